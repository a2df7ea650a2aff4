"""HPL-MxP, HPCG, BabelStream, miniBUDE and Deep500 logs, whole and broken. All numbers are ours."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.hpc.base import Run
from transect.hpc.parsers.minibude import minibude_gflop
from transect.hpc.scan import Scanner

SCANNER = Scanner()

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


def _as_yaml(text: str) -> str:
    """Write a report as version 3.0 did."""
    text = text.replace("HPCG-Benchmark\nversion=3.1", "HPCG-Benchmark version: 3.0")
    text = text.replace("Final Summary=\n", "__________ Final Summary __________=\n")
    text = re.sub(r"(?m)^.*::([^:=]+)=", r"  \1: ", text)
    return re.sub(r"(?m)^(\S[^:\n]*)=(.*)$", r"\1: \2", text)


HPCG_YAML = _as_yaml(HPCG)
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
# 4e6 elements are 32 MB.
BABEL = """\
BabelStream
Version: 4.0
Implementation: OpenMP
Running kernels 100 times
Precision: double
Array size: 32.0 MB (=0.0 GB)
Total size: 96.0 MB (=0.1 GB)
Function    MBytes/sec  Min (sec)   Max         Average
Copy        16000.000   0.00400     0.00500     0.00450
Mul         16000.000   0.00400     0.00500     0.00450
Add         16000.000   0.00600     0.00700     0.00650
Triad       19200.000   0.00500     0.00600     0.00550
Dot         32000.000   0.00200     0.00300     0.00250
"""
BABEL_5 = BABEL.replace("4.0\n", "5.0\n", 1).replace(
    "Function", "Init: 0.0700 s (=1371.4 MBytes/sec)\nRead: 0.0500 s (=1920.0 MBytes/sec)\nFunction"
)
BABEL_AFTER_5 = (
    BABEL_5.replace("MBytes/sec  Min", "MB/s        Min")
    .replace("Running kernels 100 times", "Running  Classic kernels 100 times in  Classic order")
    .replace("Precision", "Number of elements: 4000000\nPrecision")
)
BABEL_FLOAT_MIB = """\
BabelStream
Version: 5.0
Implementation: SYCL2020
Running kernels 100 times
Number of elements: 4000000
Precision: float
Array size: 15.3 MiB (=0.0 GiB)
Using SYCL device Some GPU
Function    MiBytes/sec Min (sec)   Max         Average
Copy        7629.395    0.00400     0.00500     0.00450
Mul         7629.395    0.00400     0.00500     0.00450
Add         7629.395    0.00600     0.00700     0.00650
Triad       9155.273    0.00500     0.00600     0.00550
Dot         15258.789   0.00200     0.00300     0.00250
"""
# These versions print 2^20 bytes as a MB of size: 32 MB are 33.55e6 bytes.
GPU_STREAM = """\
GPU-STREAM
Version: 1.0
Implementation: OpenCL
Precision: double

Running kernels 10 times
Array size: 32.0 MB (=0.0 GB)
Total size: 96.0 MB (=0.1 GB)
Using OpenCL device Some GPU
Function    MBytes/sec  Min (sec)   Max         Average
Copy        167772.160  0.00040     0.00050     0.00045
Mul         167772.160  0.00040     0.00050     0.00045
Add         167772.160  0.00060     0.00070     0.00065
Triad       167772.160  0.00060     0.00070     0.00065
"""
BABEL_CSV = """\
function,num_times,n_elements,sizeof,max_mbytes_per_sec,min_runtime,max_runtime,avg_runtime
Copy,100,4000000,8,16000,0.004,0.005,0.0045
Mul,100,4000000,8,16000,0.004,0.005,0.0045
Add,100,4000000,8,16000,0.006,0.007,0.0065
Triad,100,4000000,8,19200,0.005,0.006,0.0055
Dot,100,4000000,8,32000,0.002,0.003,0.0025
"""
BABEL_MOJO = """\
GPU: Some GPU
Array size: 32.0 MB
Total size: 96.0 MB
""" + "".join(
    f"{k} :\n   Min (sec): {s}\n   Max (sec): 0.009\n   Avg (sec): 0.008\n   Bandwidth (GB/s): {r}\n"
    for k, s, r in (
        ("Copy", 0.004, 16.0), ("Mul", 0.004, 16.0), ("Add", 0.006, 16.0), ("Triad", 0.005, 19.2),
        ("Dot", 0.002, 32.0),
    )
)  # fmt: skip
BABEL_TRIAD = """\
BabelStream
Version: 3.4
Implementation: CUDA
Running triad 100 times
Number of elements: 4000000
Precision: double
Array size: 32.0 MB (=0.0 GB)
--------------------------------
Runtime (seconds): 0.50000
Bandwidth (GB/s):  19.200
"""
# 20 ligand and 500 protein atoms, 10000 poses.
BUDE = """\
miniBUDE:  2.1.0
compile_commands:
   - "c++ -O3"
host_cpu:
  ~
deck:
  path:         "data/x"
  poses:        65536
  proteins:     500
  ligands:      20
  forcefields:  34
config:
  iterations:   2
  poses:        10000
  ppwi:
    available:  [1,2,4]
    selected:   [1,4]
  wgsize:       [1]
device: { index: 0,  name: "OMP CPU" }
# (ppwi=1,wgsize=1,valid=1)
# (ppwi=4,wgsize=1,valid=1)
results:
  - outcome:             { valid: true, max_diff_%: 0.001 }
    param:               { ppwi: 1, wgsize: 1 }
    raw_iterations:      [150.5,120,99,101]
    context_ms:          0.200000
    sum_ms:              200.000
    avg_ms:              100.000
    min_ms:              99.000
    max_ms:              101.000
    stddev_ms:           1.000
    giga_interactions/s: 1.000
    gflop/s:             40.043
    gfinst/s:            25.000
    energies:
      - 865.52
  - outcome:             { valid: true, max_diff_%: 0.000 }
    param:               { ppwi: 4, wgsize: 1 }
    raw_iterations:      [80,70,60,60]
    context_ms:          ~
    sum_ms:              120.000
    avg_ms:              60.000
    min_ms:              60.000
    max_ms:              60.000
    stddev_ms:           0.000
    giga_interactions/s: 1.667
    gflop/s:             54.233
    gfinst/s:            41.667
    energies:
      - 865.52
best: { min_ms: 60.00, max_ms: 60.00, sum_ms: 120.00, avg_ms: 60.00, ppwi: 4, wgsize: 1 }
"""
BUDE_CSV = """\
# (ppwi=1,wgsize=1,valid=1)
# (ppwi=4,wgsize=1,valid=1)
ppwi,wgsize,sum_ms,avg_ms,min_ms,max_ms,stddev_ms,interactions/s,gflops/s,gfinst/s
1,1,200.000,100.000,99.000,101.000,1.000,1000000000.000,40.043,25.000
4,1,120.000,60.000,60.000,60.000,0.000,1666666666.667,54.233,41.667
# best: { min_ms: 60.000, max_ms: 60.000, sum_ms: 120.000, avg_ms: 60.000, ppwi: 4, wgsize: 1 }
"""
BUDE_V1 = """\
Poses:      10000
Iterations: 2
Ligands   : 20
Proteins  : 500
Deck      : ../data/x

Running C/OpenMP
- Total time:     100.000 ms
- Average time:    50.000 ms
- Interactions/s:   2.000 billion
- GFLOP/s:         65.581
- GFInst/s:        50.000
Largest difference was 0.002%.
"""
BUDE_KERNEL = """\
Poses     : 10000
Iterations: 2
Ligands   : 20
Proteins  : 500
PPWI      : 4
WG        : 64
- Total kernel time:    100.000 ms
- Average kernel time:   50.000 ms
- Interactions/s: 2.000 billion
- GFLOP/s:        65.581
"""


def _bar(what: str, done: int, total: int, tail: str) -> str:
    return f"{what}: {100 * done // total:3d}%|{'█' * 9}| {done}/{total} [00:04<00:00, {tail}]"


D500 = "\n".join([
    _bar("Testing", 20, 20, "40.00it/s, accuracy=9.5, test_loss=2.31"),
    "\r".join(_bar("Training (epoch 1/2)", n, 100, "25.00it/s, batch_acc=80, loss_avg=0.5") for n in (1, 50, 100)),
    _bar("Testing", 20, 20, "40.00it/s, accuracy=91.2, test_loss=0.3"),
    _bar("Training (epoch 2/2)", 100, 100, "24.50it/s, batch_acc=90, loss_avg=0.2"),
    _bar("Testing", 20, 20, "40.00it/s, accuracy=95.1, test_loss=0.2"),
    "TrainingAccuracy: 94.25",
    "TestAccuracy: 95.0625",
    "[94.25, 95.0625]",
    "",
])  # fmt: skip

LOGS: dict[str, tuple[str, int, str]] = {  # log, runs, rate
    "hpl-mxp": (MXP, 1, "3.0544e+04"),
    "hpl-mxp reference": (MXP_REFERENCE, 1, "13.363333"),
    "hpl-mxp old reference": (MXP_OLD_REFERENCE, 1, "13.363333"),
    "hpl-mxp riken": (MXP_RIKEN, 1, "0.721350000"),
    "hpl-mxp amd": (MXP_AMD, 1, "2.083e+03"),
    "hpcg": (HPCG, 1, "1.35932"),
    "hpcg yaml": (HPCG_YAML, 1, "1.35932"),
    "hpcg intel": (HPCG_INTEL, 1, "1.35932"),
    "hpcg 2017": (HPCG_2017, 1, "155.0"),
    "hpcg amd": (HPCG_AMD, 1, "155.0"),
    "babelstream": (BABEL, 1, "19200.000"),
    "babelstream 5": (BABEL_5, 1, "19200.000"),
    "babelstream after 5": (BABEL_AFTER_5, 1, "19200.000"),
    "babelstream float": (BABEL_FLOAT_MIB, 1, "9155.273"),
    "babelstream gpu-stream": (GPU_STREAM, 1, "167772.160"),
    "babelstream csv": (BABEL_CSV, 1, "19200"),
    "babelstream mojo": (BABEL_MOJO, 1, "19.2"),
    "babelstream triad": (BABEL_TRIAD, 1, "19.200"),
    "minibude": (BUDE, 2, "40.043"),
    "minibude csv": (BUDE_CSV, 2, "40.043"),
    "minibude v1": (BUDE_V1, 1, "65.581"),
    "minibude kernel": (BUDE_KERNEL, 1, "65.581"),
    "deep500": (D500, 1, "95.0625"),
}
CHIEF = {"babelstream": "triad", "deep500": "TestAccuracy"}


def scan(text: str | bytes) -> list[Run]:
    raw = text.encode() if isinstance(text, str) else text
    runs = list(SCANNER.scan(io.BytesIO(raw), "log"))
    assert runs, "nothing may be lost"
    for run in runs:
        assert "fault of the parser" not in run.reason, run.reason
        assert bool(run.reason) == (run.status != "ok")
    return runs


def printed(run: Run, name: str | None = None) -> str:
    found = run.metric(name or CHIEF.get(run.benchmark, "gflops"))
    return found.printed if found else ""


def results(runs: list[Run]) -> list[object]:
    return [
        (r.benchmark, r.status, [(m.name, m.phase, m.printed) for m in r.metrics]) for r in runs
    ]


@pytest.mark.parametrize("name", LOGS)
def test_a_whole_log_is_ok(name: str) -> None:
    log, count, rate = LOGS[name]
    runs = scan(log)
    assert [(r.benchmark, r.status) for r in runs] == [(name.split()[0], "ok")] * count, runs
    assert printed(runs[0]) == rate
    found = runs[0].metric(CHIEF.get(runs[0].benchmark, "gflops"))
    assert found is not None and found.normalised is not None


DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: re.sub(r"(?<!\r)\n", "\r\n", t).encode(),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[1m", t).encode(),
    "srun -l": lambda t: re.sub(r"(?m)^", "3: ", t.replace("\r", "\n")).encode(),
    "time stamps": lambda t: re.sub(
        r"(?m)^", "2026-01-31T12:00:00.12Z ", t.replace("\r", "\n")
    ).encode(),
    "noise": lambda t: re.sub(
        r"(?m)^", "srun: job 1 queued\nslurmstepd: info x\n", t.replace("\r", "\n")
    ).encode(),
    "a long line": lambda t: b"x" * 1_000_000 + b"\n" + t.encode() + b"y" * 100_000,
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", LOGS)
def test_a_disguised_log_yields_the_same(name: str, disguise: str) -> None:
    log = LOGS[name][0]
    assert results(scan(DISGUISES[disguise](log))) == results(scan(log))


@pytest.mark.parametrize("name", LOGS)
def test_two_logs_in_one_file_are_two_runs_each(name: str) -> None:
    log, count, _ = LOGS[name]
    runs = scan(log + "\nunrelated\n" + log)
    assert len(runs) == 2 * count and {r.status for r in runs} == {"ok"}, runs
    assert [r.line for r in runs] == sorted({r.line for r in runs})


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_after_any_line_says_so(name: str) -> None:
    lines = LOGS[name][0].splitlines(keepends=True)
    whole = {(m.name, m.phase, m.printed) for r in scan(LOGS[name][0]) for m in r.metrics}
    whole.add(("gflops", None, "1.359321"))  # Intel's line has one digit more than the report
    ok = False
    for end in range(1, len(lines)):
        runs = scan("".join(lines[:end]))
        assert {(m.name, m.phase, m.printed) for r in runs for m in r.metrics} <= whole
        if all(r.status == "ok" for r in runs):
            ok = True
        else:
            # The line of Intel's build is a result of its own, before the report.
            assert not ok or name == "hpcg intel", (end, runs[-1].reason)
            assert {r.status for r in runs} <= {"ok", "truncated", "no-result"}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_yields_no_wrong_number(name: str) -> None:
    text = LOGS[name][0]
    whole = {(m.name, m.phase, m.printed) for r in scan(text) for m in r.metrics}
    whole.add(("gflops", None, "1.359321"))  # Intel's line has one digit more than the report
    listed = {"babelstream mojo"}  # its last number is accepted when it fits the time
    for end in range(len(text) // 3, len(text), max(1, len(text) // 300)):
        for run in scan(text[:end]):
            if run.status == "ok" and name not in listed:
                assert {(m.name, m.phase, m.printed) for m in run.metrics} <= whole, text[:end][
                    -60:
                ]


def _sub(pattern: str, by: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, by, text)


def _until(mark: str, tail: str = "") -> Callable[[str], str]:
    return lambda text: text[: text.index(mark)] + tail


CASES = [
    # log, change, status of the last run, part of its reason
    (MXP, _sub("PASSED", "FAILED"), "invalid", "7.654321E-04 FAILED"),
    (MXP, _sub(r"7.654321E-04", "-nan"), "invalid", "-nan"),
    (MXP, _sub(r"7.654321E-04", "1.7E+01"), "invalid", "1.7E+01 is not below 1.600000E+01"),
    (MXP, _sub(r"(\W)3.0544e", r"\g<1>9.9e"), "invalid", "9.9e+04 GFLOP/s, but N = 40960"),
    (MXP, _sub(r"15271.83", "30543.67"), "invalid", "30543.67 GFLOP/s per GPU on 2"),
    (MXP, _sub(r"GFLOPS = 3.0544e\+04", "GFLOPS = nan"), "invalid", "nan"),
    (MXP, _sub(r"GFLOPS = 3.0544e\+04", "GFLOPS = -3.0e+04"), "invalid", "outside"),
    (MXP, _until("LU seconds"), "truncated", "0 of 1"),
    (MXP, _until("LU seconds", "MPI_ABORT was invoked on rank 1\n"), "failed", "MPI_ABORT"),
    (MXP, lambda t: "srun: error: n1: task 0: Killed\n" + t, "ok", ""),
    (MXP, _sub("loop 1 of 1", "loop 1 of 3"), "truncated", "1 of 3"),
    (MXP_REFERENCE, _sub("PASSED", "FAILED"), "invalid", "FAILED"),
    (MXP_REFERENCE, _until("Total time"), "truncated", "no rate"),
    (MXP_OLD_REFERENCE, _sub("PASSED", "DID NOT PASS"), "invalid", "FAILED"),
    (MXP_RIKEN, _sub(r"sec. 0.72", "sec. 7.72"), "invalid", "7.721350000"),
    (MXP_RIKEN, _sub(r"0.181652325", "99.5"), "invalid", "99.5 is not below"),
    (MXP_AMD, _sub(r"2.083e\+03", "9.083e+03"), "invalid", "9.083e+03"),
    (HPCG, _sub("is VALID.*", "is=INVALID."), "invalid", "HPCG result is INVALID"),
    (HPCG, lambda t: t.replace("is VALID with a GFLOP/s rating of=1.35932", "is=INVALID.")
     .replace("Tests::Result=PASSED", "Tests::Result=FAILED"), "invalid", "Spectral"),
    (HPCG, _sub("Tests::Result=PASSED", "Tests::Result=FAILED"), "invalid", "VALID, but FAILED"),
    (HPCG, _sub("rating of=1.35932", "rating of=9.35932"), "invalid", "9.35932"),
    (HPCG, _sub("1.35932", "1.45"), "invalid", "1.45"),
    (HPCG, _sub("Raw MG=1.52849", "Raw MG=9.9"), "invalid", "9.9 GFLOP/s as rate of MG"),
    (HPCG, _sub("Equations=524288", "Equations=524289"), "invalid", "524289"),
    (HPCG, _sub("rating of=1.35932", "rating of=nan"), "invalid", "nan"),
    (HPCG, _until("Final Summary="), "truncated", "before the rating"),
    (HPCG, _until("Benchmark Time", "Segmentation fault (core dumped)\n"), "failed", "Segm"),
    (HPCG, _until("Release date"), "truncated", "before the rating"),
    (HPCG, lambda t: "HPCG-NVIDIA 25.4.0  -- NVIDIA accelerated HPCG benchmark\n" + t, "ok", ""),
    (HPCG, lambda t: t[t.index("Final Summary::HPCG") :], "ok", ""),
    (HPCG_YAML, _sub("HPCG result is VALID.*", "HPCG result is: INVALID."), "invalid", "INVALID"),
    (HPCG_2017, _sub("final =  155.0", "final =  455.0"), "invalid", "exceeds the raw"),
    (HPCG_2017, _sub(" 70.1 GF_per", " 90.1 GF_per"), "invalid", "90.1 GFLOP/s on each of 2"),
    (HPCG_2017, _until("final"), "truncated", "before the rating"),
    (HPCG_AMD, lambda t: t + "*** WARNING *** THIS IS NOT A VALID RUN ***\n", "invalid", "INVALID"),
    (BABEL, _sub("Function", "Validation failed on a[]. Average error 0.25\nFunction"), "invalid", "a[]"),
    (BABEL, lambda t: t + "Validation failed on sum. Error 0.5\n", "invalid", "sum"),
    (BABEL, _sub(r"19200.000  ", "99200.000  "), "invalid", "99200.000 MB/s, but"),
    (BABEL, _sub(r"19200.000  ", "-19200.000 "), "invalid", "outside"),
    (BABEL, _sub(r"19200.000  ", "nan        "), "invalid", "triad: the rate is nan"),
    (BABEL, _until("Dot "), "truncated", "no row for dot"),
    (BABEL, _until("Triad ", "srun: error: n1: task 0: Out Of Memory\n"), "failed", "Out Of"),
    (BABEL, _until("Function"), "truncated", "before the table"),
    (BABEL, lambda t: t[t.index("Function") :], "ok", ""),
    (BABEL_5, lambda t: "srun: error: n1: x\n" + t, "ok", ""),
    (BABEL_CSV, _sub(",19200,", ",92000,"), "invalid", "92000 MB/s, but"),
    (BABEL_CSV, _until("Add,"), "truncated", "no row for add, triad, dot"),
    (BABEL_MOJO, _sub("19.2", "91.2"), "invalid", "91.2 GB/s, but"),
    # The Java port divides by 10^6 and writes GB/s, and forgets a line end.
    (BABEL_TRIAD, lambda t: t.replace("0\nBandwidth (GB/s):  19.200", "0Bandwidth (GB/s): 19200.000 "),
     "invalid", "19200.000 GB/s, but"),
    (BABEL_TRIAD, _until("Runtime"), "truncated", "before the table"),
    ("Unrecognized argument '--triad-only' (try '--help')\n", str.upper, "no-result", ""),
    (BUDE, _sub("54.233", "94.233"), "invalid", "94.233 GFLOP/s, but"),
    (BUDE, _sub(r"true, max_diff_%: 0.000", "false, max_diff_%: 37.5"), "invalid", "wrong energies"),
    (BUDE, _sub(r"\[80,70,60,60\]", "[80,70,60,99]"), "invalid", "raw iterations sum"),
    (BUDE, _sub(r"sum_ms:              120", "sum_ms:              999"), "invalid", "2 iterations"),
    (BUDE, _until("  - outcome:             { valid: true, max_diff_%: 0.000"), "truncated", "1 of 2"),
    (BUDE, _until("results:", "terminate called after throwing\n"), "failed", "terminate called"),
    (BUDE_CSV, _sub("54.233", "154.233"), "invalid", "operations each"),
    (BUDE_CSV, _sub("ppwi=4,wgsize=1,valid=1", "ppwi=4,wgsize=1,valid=0"), "invalid", "wrong"),
    (BUDE_CSV, _until("4,1,120"), "ok", ""),
    (BUDE_V1, _sub("65.581", "-65.581"), "invalid", "outside"),
    (BUDE_V1, _sub("65.581", "6558100"), "invalid", "above 1e+06"),
    (BUDE_V1, _sub("65.581", "165.581"), "invalid", "operations each"),
    (BUDE_V1, _sub("50.000\n", "70.000\n"), "invalid", "70.000 GFInst/s"),
    (BUDE_V1, _sub("0.002%", "12.5%"), "invalid", "12.5 %"),
    (BUDE_V1, _until("- GFLOP"), "truncated", "no GFLOP/s"),
    (BUDE_V1, _until("- Total"), "truncated", "0 results"),
    (BUDE_KERNEL, _sub("65.581", "75.581"), "invalid", "75.581 GFLOP/s, but"),
    (D500, _sub("TestAccuracy: 95.0625", "TestAccuracy: 59.0625"), "invalid", "59.0625"),
    (D500, _sub("Accuracy: 9", "Accuracy: 109"), "invalid", "not within"),
    (D500, _sub("TestAccuracy: 95.0625", "TestAccuracy: nan"), "invalid", "TestAccuracy is nan"),
    (D500, _sub("loss_avg=0.2", "loss_avg=nan"), "invalid", "loss_avg=nan"),
    (D500, _sub("Accuracy: .*", "Accuracy: -1.0"), "invalid", "no accuracy"),
    (D500, _until("TrainingAccuracy"), "truncated", "2 of 2 epochs"),
    (D500, _until("Training (epoch 2", "RuntimeError: CUDA out of memory\n"), "failed", "CUDA out"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("log", "change", "status", "reason"), CASES, ids=[f"{i}-{c[2]}" for i, c in enumerate(CASES)]
)
def test_status_and_reason(
    log: str, change: Callable[[str], str], status: str, reason: str
) -> None:
    changed = change(log)
    assert changed != log
    run = scan(changed)[-1]
    assert run.status == status, run.reason
    assert reason in run.reason


def test_hpl_mxp_takes_the_rate_to_report_and_names_the_precision() -> None:
    (run,) = scan(MXP)
    assert (run.variant, run.version) == ("nvidia", "24.9.0")
    assert (printed(run, "lu_gflops"), printed(run, "residual")) == ("9.1631e+04", "7.654321E-04")
    assert run.parameters["SLOPPY-TYPE"] == "2" and run.parameters["precision"] == "FP16"
    (newer,) = scan(MXP.replace("SLOPPY-TYPE = 2", "SLOPPY-TYPE = FP8"))
    assert newer.parameters["precision"] == "FP8"


def test_hpl_mxp_yields_each_loop() -> None:
    head, loop = MXP[: MXP.index(" ****** test loop")], MXP[MXP.index(" ****** test loop") :]
    loops = [loop.replace("loop 1 of 1", f"loop {i} of 2") for i in (1, 2)]
    assert [r.status for r in scan(head + "".join(loops))] == ["ok", "ok"]
    runs = scan(head + loops[0] + loops[1][: loops[1].index("Threshold")])
    assert [r.status for r in runs] == ["ok", "truncated"]


def test_hpl_ai_row_of_the_first_nvidia_containers() -> None:
    (run,) = scan(
        "HPL_AI   WR00C4C4  50000  256  1  2  40.00  4.000e+03  20.00  2  2.083e+03\n"
        "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0020000 ...... PASSED\n"
    )
    assert (run.status, printed(run), printed(run, "lu_gflops")) == ("ok", "2.083e+03", "4.000e+03")
    assert run.parameters["N"] == 50000


def test_hpl_stays_hpl() -> None:
    text = (
        "HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018\n"
        "T/V                N    NB     P     Q               Time                 Gflops\n"
        "WR11C2R4        1000   128     1     1               0.10              6.682e+00\n"
        "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.69280000e-03 ...... PASSED\n"
        "End of Tests.\n"
    )
    assert [r.benchmark for r in scan(text)] == ["hpl"]


def test_hpcg_variants_and_parameters() -> None:
    for log, variant, version in (
        (HPCG, "reference", "3.1"), (HPCG_YAML, "reference", "3.0"), (HPCG_INTEL, "intel", "V3.1"),
    ):  # fmt: skip
        (run,) = scan(log)
        assert (run.variant, run.version) == (variant, version)
        assert (run.parameters["ranks"], run.parameters["threads"]) == (2, 4)
        assert (run.parameters["Global nx"], run.parameters["nx"]) == (128, 64)
        assert run.parameters["Number of Equations"] == 524288
        assert (printed(run, "time"), printed(run, "hpcg24_rating")) == ("20.5", "1.37496")
        assert any("1800 s" in w for w in run.warnings)
    (run,) = scan(HPCG_2017)
    assert run.variant == "nvidia" and any("no VALID" in w for w in run.warnings)
    assert scan(HPCG_AMD)[0].variant == "amd"


def test_hpcg_rating_line_of_another_run_is_a_run_of_its_own() -> None:
    runs = scan("HPCG result is VALID with a GFLOP/s rating of 7.5\n" + HPCG)
    assert [printed(r) for r in runs] == ["7.5", "1.35932"]
    runs = scan(HPCG + "HPCG result is VALID with a GFLOP/s rating of 7.5\n")
    assert [printed(r) for r in runs] == ["1.35932", "7.5"]


def test_hpcg_of_version_2_does_not_count_the_setup() -> None:
    old = HPCG.replace("version=3.1", "version=2.4").replace("1.35932", "1.37496")
    assert [r.status for r in scan(old)] == ["ok"]


def test_babelstream_units_precision_and_normalised_values() -> None:
    (run,) = scan(BABEL_FLOAT_MIB)
    triad = run.metric("triad")
    assert triad is not None and triad.unit == "MiB/s" and triad.normalised is not None
    assert triad.normalised.value == pytest.approx(9.6e9, rel=1e-6)
    assert (run.variant, run.parameters["precision"]) == ("SYCL2020", "float")
    giga = (
        BABEL.replace("MBytes/sec", "GBytes/sec")
        .replace("000.000", ".000")
        .replace("19200.000", "19.200")
    )
    assert [r.status for r in scan(giga)] == ["ok"]


def test_babelstream_of_fortran_and_nstream() -> None:
    fortran = BABEL.replace("BabelStream\n", "BabelStream Fortran\n").replace(
        "32.0 MB", "     32.0MB "
    )
    assert [r.status for r in scan(fortran)] == ["ok"]
    table = BABEL.index("Copy ")
    only = BABEL[:table] + "Nstream     25600.000   0.00500     0.00600     0.00550\n"
    (run,) = scan(only)
    assert run.status == "ok" and printed(run, "nstream") == "25600.000"


def test_babelstream_rate_that_fills_its_column() -> None:
    packed = BABEL.replace("Array size: 32.0", "Array size: 48000.0").replace(
        "Triad       19200.000   0.00500 ", "Triad       28800000.0000.00500 "
    )
    packed = packed.replace("000.000   0.00", "000.000   6.00").replace("0.00500", "0.00500")
    (run,) = scan(packed)
    assert printed(run) == "28800000.000" and printed(run, "triad_minimum_time") == "0.00500"


def test_babelstream_csv_of_julia_prints_all_bytes_as_sizeof() -> None:
    lines = BABEL_CSV.splitlines()
    sizes = {"Copy": 64, "Mul": 64, "Add": 96, "Triad": 96, "Dot": 64}
    julia = [lines[0]] + [
        one.replace("4000000,8", f"4000000,{sizes[one.split(',')[0]]}000000") for one in lines[1:]
    ]
    assert [r.status for r in scan("\n".join(julia) + "\n")] == ["ok"]


def test_babelstream_tables_of_ranks() -> None:
    lines = BABEL.splitlines()
    labelled = "".join(f"{rank:2d}: {line}\n" for line in lines for rank in range(8))
    runs = scan(labelled)
    assert [r.status for r in runs] == ["ok"] * 8 and not any(r.warnings for r in runs)
    runs = scan("".join(f"{line}\n" * 8 for line in lines))
    assert [r.status for r in runs] == ["ok"] * 8 and all(
        "rank labels" in r.warnings[0] for r in runs
    )


def test_a_cut_run_before_a_whole_one_does_not_take_its_rows() -> None:
    runs = scan(BABEL[: BABEL.index("Add ")] + BABEL)
    assert [r.status for r in runs] == ["truncated", "ok"]
    runs = scan(BABEL[: BABEL.index("Function")] + BABEL)
    assert "truncated" in [r.status for r in runs] and runs[-1].status == "ok"


@pytest.mark.parametrize(
    ("option", "benchmark"),
    [("--triad-only", "babelstream"), ("--ppwi", "minibude"), ("--foo", "unknown")],
)
def test_a_refused_option_belongs_to_the_program_that_has_it(option: str, benchmark: str) -> None:
    (run,) = scan(f"Unrecognized argument '{option}' (try '--help')\n")
    assert run.benchmark == benchmark
    assert run.status == ("no-result" if benchmark == "unknown" else "failed")


def test_minibude_counts_as_its_source_does() -> None:
    assert minibude_gflop(10000, 20, 500, 1) / 0.1 == pytest.approx(40.0428)
    assert minibude_gflop(10000, 20, 500, 4, version=1) / 0.05 == pytest.approx(65.5806)


def test_minibude_keeps_poses_per_work_item_and_raw_iterations() -> None:
    one, four = scan(BUDE)
    assert (one.parameters["ppwi"], four.parameters["ppwi"]) == (1, 4)
    assert (one.parameters["poses"], one.parameters["deck_poses"]) == (10000, 65536)
    assert one.samples["iterations"].values == [150.5, 120.0, 99.0, 101.0]
    assert (one.version, one.variant) == ("2.1.0", "v2")
    assert [r.parameters["ppwi"] for r in scan(BUDE_CSV)] == [1, 4]


def test_minibude_skipped_sizes_are_not_missing() -> None:
    note = " # WARNING: pose count 10000 % (1 (wgsize) * 3 (ppwi)) != 0, skipping\n"
    skipped = BUDE.replace("selected:   [1,4]", "selected:   [1,3,4]").replace(
        "results:", note + "results:"
    )
    assert [r.status for r in scan(skipped.replace("best:", "xbest:"))] == ["ok", "ok"]


def test_minibude_invalid_rows_hold_the_largest_double() -> None:
    huge = "1" + "7" * 308 + ".000"
    row = f"4,1,{huge},{huge},{huge},{huge},0.000,0.000,0.000,0.000"
    text = re.sub(r"(?m)^4,1,.*$", row, BUDE_CSV).replace(
        "ppwi=4,wgsize=1,valid=1", "ppwi=4,wgsize=1,valid=0"
    )
    runs = scan(text)
    assert [r.status for r in runs] == ["ok", "invalid"]


def test_minibude_blocks_without_a_deck_are_all_found() -> None:
    block = BUDE_V1[BUDE_V1.index("- Total") : BUDE_V1.index("Largest")]
    text = f"miniBUDE:\nUsing kernel parameters: <<<256,64>>> 1:65536\n{block}\nminiBUDE port:\n{block}"
    runs = scan(text)
    assert [r.status for r in runs] == ["ok", "ok"]
    assert (runs[0].parameters["wgsize"], runs[1].parameters["label"]) == (64, "miniBUDE port")


def test_deep500_keeps_epochs_apart_from_progress() -> None:
    (run,) = scan(D500)
    rates = [(m.phase, m.printed) for m in run.metrics if m.name == "training_rate"]
    assert rates == [("epoch 1", "25.00"), ("epoch 2", "24.50")]
    assert run.parameters == {"epochs": 2, "batches_per_epoch": 100}
    accuracy = run.metric("TestAccuracy")
    assert accuracy is not None and accuracy.normalised is not None
    assert accuracy.normalised.value == pytest.approx(0.950625)
    slow = D500.replace("25.00it/s", "2.00s/it")
    assert scan(slow)[0].samples["training_rate"].values[0] == 0.5


def test_deep500_metrics_alone_and_other_peoples_bars() -> None:
    (run,) = scan("WallclockTime: 12.50 ms\nMaxError: 1e-07\n")
    assert (run.variant, run.status, printed(run, "MaxError")) == ("metrics", "ok", "1e-07")
    (other,) = scan("Testing: 100%|####| 20/20 [00:04<00:00, 5.00it/s]\n")
    assert other.benchmark == "unknown"


@pytest.mark.parametrize("name", LOGS)
def test_a_foreign_parser_takes_nothing(name: str) -> None:
    head = "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
    runs = scan(LOGS[name][0] + head)
    assert runs[-1].benchmark == "stream" and runs[0].benchmark == name.split()[0]


_TEXTS = [log for log, _, _ in LOGS.values()]
_WORDS = [
    *sorted({w for log in _TEXTS for w in re.findall(r"\S+|\n", log)}),
    "\n", "\r", "\0", "9" * 400, "1e999", "-nan", "1e-9999", "é", "0: ", "::", "[" * 50,
    "\N{ARABIC-INDIC DIGIT THREE}",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    lines = draw(st.sampled_from(_TEXTS)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(len(lines) - 1, 0)))
        what = draw(st.sampled_from(["delete", "duplicate", "swap", "cut", "words", "bytes"]))
        if not lines:
            break
        if what == "delete":
            del lines[at]
        elif what == "duplicate":
            lines[at:at] = lines[at : at + draw(st.integers(1, 8))]
        elif what == "swap":
            other = draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        elif what == "cut":
            lines[at] = lines[at][: draw(st.integers(0, 30))]
        elif what == "words":
            words = lines[at].split(" ")
            words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(_WORDS))
            lines[at] = " ".join(words)
        else:
            lines[at] += draw(st.binary(max_size=20)).decode("latin-1")
    return "".join(lines).encode("utf-8", "replace")


@settings(deadline=None, max_examples=400)
@given(mutated())
def test_no_mutation_breaks_a_parser(raw: bytes) -> None:
    begin = time.process_time()
    for run in scan(raw):
        assert Run.model_validate_json(run.model_dump_json()) == run
    assert time.process_time() - begin < 5.0


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(_WORDS), max_size=80))
def test_no_words_break_a_parser(words: list[str]) -> None:
    scan(" ".join(words))


@pytest.mark.parametrize("name", LOGS)
def test_very_long_lines_and_many_of_them_stay_fast(name: str) -> None:
    lines = LOGS[name][0].splitlines()
    text = "\n".join(line + " " + "9 " * 9000 for line in lines) + "\n"
    begin = time.process_time()
    scan(text)
    scan("\n".join(lines * 40) + "\n")
    assert time.process_time() - begin < 10.0
