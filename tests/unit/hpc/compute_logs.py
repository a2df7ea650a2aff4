"""Logs of benchmarks of processors and their memory as the tests of their parsers need them."""

from __future__ import annotations

from log_scan import made

from transect.hpc.base import Run

# 4e6 elements are 32 MB.
BABEL = made("babel")


BABEL_5 = BABEL.replace("4.0\n", "5.0\n", 1).replace(
    "Function", "Init: 0.0700 s (=1371.4 MBytes/sec)\nRead: 0.0500 s (=1920.0 MBytes/sec)\nFunction"
)


BABEL_FLOAT_MIB = made("babel-float-mib")


BABEL_CSV = made("babel-csv")


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


BABEL_TRIAD = made("babel-triad")


BABEL_AFTER_5 = (
    BABEL_5.replace("MBytes/sec  Min", "MB/s        Min")
    .replace("Running kernels 100 times", "Running  Classic kernels 100 times in  Classic order")
    .replace("Precision", "Number of elements: 4000000\nPrecision")
)


# These versions print 2^20 bytes as a MB of size: 32 MB are 33.55e6 bytes.
# Microsoft's STREAM: a rate and five numbers that nothing names.
STREAM_MICROSOFT = made("stream-microsoft")

GPU_STREAM = made("gpu-stream")


# 20 ligand and 500 protein atoms, 10000 poses.
BUDE = made("bude")


BUDE_CSV = made("bude-csv")


BUDE_V1 = made("bude-v1")


BUDE_KERNEL = made("bude-kernel")


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
