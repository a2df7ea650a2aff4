"""Logs of HPL-MxP and HPCG as the tests of their parsers need them."""

from __future__ import annotations

import re

# N = 40960 is 45815.5 GFLOP; 0.5 s of factorisation and 1 s of refinement.
MXP = """\
================================================================================
HPL-MxP-NVIDIA 24.9.0  -- NVIDIA accelerated HPL-MxP benchmark benchmark -- NVIDIA
================================================================================

 ****** HPL MxP Settings ******

   --nprow =  1
   --npcol =  2
   --n     = 40960
   --sloppy-type                      = 2

 ****** test 1 of 1 starts ******

   n      = 40960
   nb     = 1024

 ****** Testing HPL MxP components ******
GEMM seconds: AVG = 1.00, MAX = 1.00 (0->a), MIN = 1.00 (0->a)
GEMM GFLOPS: AVG = 99999.11, MAX = 99999.11 (0->a), MIN = 99999.11 (0->a)

 ****** test loop 1 of 1 starts ******

2025-02-03 04:05:06.789
\x1b[0;31m Prog=  50.00% N_left=    20480 Time=     0.25 Time_left= 0.2 iTF= 9.0 TF= 90.00\x1b[0m
LU seconds: AVG = 0.50, MAX = 0.50 (1->a), MIN = 0.50 (0->a)

Solver iteration  0, L-infinite residual = 4.71e-04
Iterative Solver seconds: AVG = 1.00, MAX = 1.00 (0->a), MIN = 1.00 (1->a)

 ****** HPL MxP Result    ******

    EPS           . . . . . . . . . . . . . . . . .          =    2.000000E-16
    Threshold     . . . . . . . . . . . . . . . . .          =    1.600000E+01
  ||Ax-b||_oo     . . . . . . . . . . . . . . . . .          =    5.213618E-14
  ||Ax-b||_oo / (EPS * (||A||_oo * ||x||_oo + ||b||_oo) * N) =    7.654321E-04 ...... PASSED

    N = 40960, NB = 1024, NPROW = 1, NPCOL = 2, SLOPPY-TYPE = 2
\x1b[0;31m       GFLOPS = 3.0544e+04, per GPU =   15271.83\x1b[0m\x1b[0;34m ------ to report\x1b[0m
    LU GFLOPS = 9.1631e+04, per GPU =   45815.50\x1b[0;34m ------ excluding the solver\x1b[0m

 ****** HPL MxP Result    ******


 ****** test loop 1 of 1 done   ******
"""


MXP_REFERENCE = """\
======================================================================================
                        HPL-AI Mixed-Precision Benchmark
======================================================================================
Time spent in conversion to single:        0.001 second
Time spent in factorization       :        0.030 second
Time spent in solve               :        0.001 second
Time spent in conversion to double:        0.001 second
Time spent in GMRES               :        0.017 second
Total time                        :        0.050 second
Effective operation per sec       :    13.363333 GFLOPs
Computational tests pass if scaled residuals are less than 16.0
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.0123 ...... PASSED
"""


MXP_OLD_REFERENCE = """\
Time spent in conversion to single: 1.000000e-03 second.
Time spent in factorization       : 3.000000e-02 second.
Time spent in GMRES               : 1.700000e-02 second.
Total time                        : 5.000000e-02 second.
Effective operation per sec       :    13.363333 GFLOPs
Final backward error |A*x-b| / (|A||x|+|b|) / n : 1.500000e-19
Machine epsilon in double precision: 2.220446e-16
Backward error PASSED the machine epsilon threshold.
"""


MXP_RIKEN = """\
done MPI_Init_thread, provided = 2
jobid=0
n=1200 b=60 r=2 c=2
2dbc lazy rdma full nopack nocheck noskiplu ddmat
# iterative refinement: step=  0, residual=3.36e-02 hpl-harness=159967816086.4
#END__: Mon Jun 29 09:04:07 2020
1.600000000 sec. 0.721350000 GFlop/s resid = 3.899e-14 hpl-harness = 0.181652325
"""


MXP_AMD = """\
# refinement: step=  1, ||r||=1.0e-03, residual=1.2e+05
# refinement: step=  2, ||r||=1.0e-13, residual=0.002
WC0            50000  1024     1     2              40.00              2.083e+03
HPLMXP_pdgesv() start time Mon Feb  3 04:05:06 2025
Final Score:    2.0834e+03 GFLOPS
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0020000 ...... PASSED
Residual Check: PASSED
"""


# 128 x 64 x 64 rows, 3 sets of 52 iterations against 50 of the reference.
HPCG = """\
HPCG-Benchmark
version=3.1
Release date=March 28, 2019
Machine Summary=
Machine Summary::Distributed Processes=2
Machine Summary::Threads per processes=4
Global Problem Dimensions=
Global Problem Dimensions::Global nx=128
Global Problem Dimensions::Global ny=64
Global Problem Dimensions::Global nz=64
Processor Dimensions=
Processor Dimensions::npx=2
Local Domain Dimensions=
Local Domain Dimensions::nx=64
########## Problem Summary  ##########=
Setup Information=
Setup Information::Setup Time=0.8
Linear System Information=
Linear System Information::Number of Equations=524288
Linear System Information::Number of Nonzero Terms=13790200
Multigrid Information=
Multigrid Information::Coarse Grids=
Multigrid Information::Coarse Grids::Number of Equations=65536
########## V&V Testing Summary  ##########=
Spectral Convergence Tests=
Spectral Convergence Tests::Result=PASSED
Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon=
Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon::Result=PASSED
########## Iterations Summary  ##########=
Iteration Count Information=
Iteration Count Information::Result=PASSED
Iteration Count Information::Reference CG iterations per set=50
Iteration Count Information::Optimized CG iterations per set=52
Iteration Count Information::Total number of optimized iterations=156
########## Reproducibility Summary  ##########=
Reproducibility Information=
Reproducibility Information::Result=PASSED
Reproducibility Information::Scaled residual mean=0.0031
########## Performance Summary (times in sec) ##########=
Benchmark Time Summary=
Benchmark Time Summary::Optimization phase=1.2
Benchmark Time Summary::DDOT=0.25
Benchmark Time Summary::WAXPBY=0.5
Benchmark Time Summary::SpMV=3
Benchmark Time Summary::MG=16
Benchmark Time Summary::Total=20.5
Floating Point Operations Summary=
Floating Point Operations Summary::Raw DDOT=4.93879e+08
Floating Point Operations Summary::Raw WAXPBY=4.93879e+08
Floating Point Operations Summary::Raw SpMV=4.38528e+09
Floating Point Operations Summary::Raw MG=2.44559e+10
Floating Point Operations Summary::Total=2.98289e+10
Floating Point Operations Summary::Total with convergence overhead=2.86817e+10
GB/s Summary=
GB/s Summary::Raw Total B/W=11.1
GFLOP/s Summary=
GFLOP/s Summary::Raw DDOT=1.97552
GFLOP/s Summary::Raw WAXPBY=0.987759
GFLOP/s Summary::Raw SpMV=1.46176
GFLOP/s Summary::Raw MG=1.52849
GFLOP/s Summary::Raw Total=1.45507
GFLOP/s Summary::Total with convergence overhead=1.39911
GFLOP/s Summary::Total with convergence and optimization phase overhead=1.35932
Final Summary=
Final Summary::HPCG result is VALID with a GFLOP/s rating of=1.35932
Final Summary::HPCG 2.4 rating for historical reasons is=1.37496
Final Summary::Reference version of ComputeSPMV used=Performance results are most likely suboptimal
Final Summary::Results are valid but execution time (sec) is=20.5
Final Summary::Official results execution time (sec) must be at least=1800
"""


def as_yaml(text: str) -> str:
    """Write a report as version 3.0 did."""
    text = text.replace("HPCG-Benchmark\nversion=3.1", "HPCG-Benchmark version: 3.0")
    text = text.replace("Final Summary=\n", "__________ Final Summary __________=\n")
    text = re.sub(r"(?m)^.*::([^:=]+)=", r"  \1: ", text)
    return re.sub(r"(?m)^(\S[^:\n]*)=(.*)$", r"\1: \2", text)


HPCG_YAML = as_yaml(HPCG)


HPCG_INTEL = "HPCG result is VALID with a GFLOP/s rating of 1.359321\n" + re.sub(
    r"(?m)^Final Summary", " Final Summary ", HPCG
).replace("HPCG-Benchmark\nversion=3.1", "n64-2p-4t\nversion=V3.1")


HPCG_2017 = """\
start of application (8 OMP threads)...
Problem setup...
Setup time: 0.010 sec
GPU: 'Tesla V9'
Number of CG sets:\t 213
Iterations per set:\t51
scaled res mean:\t3.9e-03

Total Time: 60.18 sec
Setup        Overhead: 0.43%
Optimization Overhead: 1.02%
Convergence  Overhead: 1.96%

2x1x1 process grid
256x256x256 local domain
SpMV  =  140.2 GF ( 880.3 GB/s Effective)   70.1 GF_per ( 440.2 GB/s Effective)
SymGS =  166.8 GF (1287.0 GB/s Effective)   83.4 GF_per ( 643.5 GB/s Effective)
total =  160.0 GF (1213.0 GB/s Effective)   80.0 GF_per ( 606.5 GB/s Effective)
final =  155.0 GF (1175.0 GB/s Effective)   77.5 GF_per ( 587.5 GB/s Effective)
"""


HPCG_AMD = """\
rocHPCG version: 0.8.6-rc1 (based on hpcg-3.1)
Total Time: 60.20 sec
1x1x1 process grid
280x280x280 local domain
SpMV  =   150.2 GFlop/s (  940.1 GB/s)    150.2 GFlop/s per process (  940.1 GB/s per process)
total =   160.0 GFlop/s ( 1213.0 GB/s)    160.0 GFlop/s per process ( 1213.0 GB/s per process)
final =   155.0 GFlop/s ( 1175.0 GB/s)    155.0 GFlop/s per process ( 1175.0 GB/s per process)
"""
