"""Logs of benchmarks of processors and their memory as the tests of their parsers need them."""

from __future__ import annotations

from transect.hpc.base import Run

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
        ("Copy", 0.004, 16.0),
        ("Mul", 0.004, 16.0),
        ("Add", 0.006, 16.0),
        ("Triad", 0.005, 19.2),
        ("Dot", 0.002, 32.0),
    )
)


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


BABEL_AFTER_5 = (
    BABEL_5.replace("MBytes/sec  Min", "MB/s        Min")
    .replace("Running kernels 100 times", "Running  Classic kernels 100 times in  Classic order")
    .replace("Precision", "Number of elements: 4000000\nPrecision")
)


# These versions print 2^20 bytes as a MB of size: 32 MB are 33.55e6 bytes.
# Microsoft's STREAM: a rate and five numbers that nothing names.
STREAM_MICROSOFT = """\
Read and write vector size is 64.0 MB
Scale and Copy vector size is 128.0 MB
Triad and Add vector size is 192.0 MB
Test executed with 2 cores
Number of threads is 4
Loops are using SSE instructions
Number of Iterations is 6
Function    Best Rate MB/s
Read:      244    241    240    213    210    214
Copy:      377    372    365    217    215    220
Scale:     375    370    368    218    217    219
Add:       519    512    507    215    214    216
Triad:     515    511    505    216    214    216
Write:     228    226    224    227    225    229
"""

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


def bar(what: str, done: int, total: int, tail: str) -> str:
    return f"{what}: {100 * done // total:3d}%|{'█' * 9}| {done}/{total} [00:04<00:00, {tail}]"


D500 = "\n".join(
    [
        bar("Testing", 20, 20, "40.00it/s, accuracy=9.5, test_loss=2.31"),
        "\r".join(bar("Training (epoch 1/2)", n, 100, "25.00it/s, batch_acc=80, loss_avg=0.5") for n in (1, 50, 100)),
        bar("Testing", 20, 20, "40.00it/s, accuracy=91.2, test_loss=0.3"),
        bar("Training (epoch 2/2)", 100, 100, "24.50it/s, batch_acc=90, loss_avg=0.2"),
        bar("Testing", 20, 20, "40.00it/s, accuracy=95.1, test_loss=0.2"),
        "TrainingAccuracy: 94.25",
        "TestAccuracy: 95.0625",
        "[94.25, 95.0625]",
        "",
    ]
)


CHIEF = {"babelstream": "triad", "deep500": "TestAccuracy"}


def printed(run: Run, name: str | None = None) -> str:
    found = run.metric(name or CHIEF.get(run.benchmark, "gflops"))
    return found.printed if found else ""
