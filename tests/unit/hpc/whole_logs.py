"""All whole logs of the tests of the parsers, and what terminals, launchers and file systems make of a log."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

import cluster_logs
import compute_logs as compute
import hpc_logs
import learning_logs as learning
import network_logs as network
import solver_logs as solver
import storage_logs


class Log(NamedTuple):
    """A log of one benchmark whose runs are all ok; `rate` are the digits of its chief result."""

    text: str
    benchmark: str
    runs: int = 1
    rate: str = ""


_COMPUTE = {
    "hpl-mxp": (solver.MXP, 1, "3.0544e+04"),
    "hpl-mxp reference": (solver.MXP_REFERENCE, 1, "13.363333"),
    "hpl-mxp old reference": (solver.MXP_OLD_REFERENCE, 1, "13.363333"),
    "hpl-mxp riken": (solver.MXP_RIKEN, 1, "0.721350000"),
    "hpl-mxp amd": (solver.MXP_AMD, 1, "2.083e+03"),
    "hpcg": (solver.HPCG, 1, "1.35932"),
    "hpcg yaml": (solver.HPCG_YAML, 1, "1.35932"),
    "hpcg intel": (solver.HPCG_INTEL, 1, "1.35932"),
    "hpcg 2017": (solver.HPCG_2017, 1, "155.0"),
    "hpcg amd": (solver.HPCG_AMD, 1, "155.0"),
    "babelstream": (compute.BABEL, 1, "19200.000"),
    "babelstream 5": (compute.BABEL_5, 1, "19200.000"),
    "babelstream after 5": (compute.BABEL_AFTER_5, 1, "19200.000"),
    "babelstream float": (compute.BABEL_FLOAT_MIB, 1, "9155.273"),
    "babelstream gpu-stream": (compute.GPU_STREAM, 1, "167772.160"),
    "babelstream csv": (compute.BABEL_CSV, 1, "19200"),
    "babelstream mojo": (compute.BABEL_MOJO, 1, "19.2"),
    "babelstream triad": (compute.BABEL_TRIAD, 1, "19.200"),
    "minibude": (compute.BUDE, 2, "40.043"),
    "minibude csv": (compute.BUDE_CSV, 2, "40.043"),
    "minibude v1": (compute.BUDE_V1, 1, "65.581"),
    "minibude kernel": (compute.BUDE_KERNEL, 1, "65.581"),
    "deep500": (compute.D500, 1, "95.0625"),
}
LOGS = {
    **{name: Log(text, name) for name, text in hpc_logs.LOGS.items()},
    **{name: Log(text, name.split()[0]) for name, text in storage_logs.LOGS.items()},
    **{name: Log(text, name.split()[0], runs, rate) for name, (text, runs, rate) in _COMPUTE.items()},
    "stream microsoft": Log(compute.STREAM_MICROSOFT, "stream"),
    **{name: Log(text, name.split()[0], runs) for name, (text, runs) in cluster_logs.LOGS.items()},
    "superbench": Log(cluster_logs.SUPERBENCH, "stream", 2),
    "osu": Log(network.OSU, "osu", 6),
    "imb": Log(network.IMB, "imb", 3),
    "nccl-tests": Log(network.NCCL, "nccl-tests"),
    "nccl-tests pieces": Log(network.NCCL_PIECES, "nccl-tests"),
    "graph500": Log(network.GRAPH500, "graph500"),
    "npb": Log(network.NPB, "npb"),
    "mlperf": Log(learning.mlperf(), "mlperf-training"),
    "mlperf 0.5": Log(learning.OLD, "mlperf-training"),
    "mlperf 0.6": Log(learning.mll(), "mlperf-training"),
    "mlperf hpc": Log(learning.mlperf("cosmoflow", "eval_error", (0.2, 0.1)), "mlperf-hpc"),
    "tf-cnn-benchmarks": Log(learning.TF, "tf-cnn-benchmarks"),
    "horovod": Log(learning.HOROVOD, "horovod"),
    "onnxruntime-perf-test": Log(learning.ORT, "onnxruntime-perf-test"),
    **{name: Log(text, "dl-training") for name, text in learning.TRAININGS.items()},
    "file-probe": Log(hpc_logs.FILES, "file-probe"),
}


def _before_lines(label: str) -> Callable[[str], bytes]:
    # A line that a carriage return ends is a line of its own to a launcher.
    return lambda text: re.sub(r"(?m)^", label, text.replace("\r", "\n")).encode()


DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: re.sub(r"(?<!\r)\n", "\r\n", t).encode(),
    "UTF-16": lambda t: t.encode("utf-16"),
    "UTF-16 big endian": lambda t: b"\xfe\xff" + t.encode("utf-16-be"),
    "UTF-16 without a mark": lambda t: t.encode("utf-16-le"),
    "UTF-8 with a mark": lambda t: b"\xef\xbb\xbf" + t.encode(),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[0;31m", t).replace("\n", "\x1b[0m\n").encode(),
    "bold": _before_lines("\x1b[1m"),
    "NUL bytes": lambda t: (b"\0" * 100_000) + t.replace("e", "e\0").encode(),
    "srun -l": _before_lines("0: "),
    "srun -l of another rank": _before_lines("3: "),
    "srun -l, padded": _before_lines("  3: "),
    "Open MPI tags": _before_lines("[1,0]<stdout>:"),
    "time stamps": _before_lines("2026-01-31T12:00:00.1234567Z "),
    "coarse time stamps": _before_lines("2026-01-31T12:00:00.12Z "),
    "indented": _before_lines("\t"),
    "noise": _before_lines("srun: job 1 queued\nINFO x=1\n"),
    "noise of Slurm": _before_lines("srun: job 7 queued\nslurmstepd: info: x\n"),
    "noise of NCCL": _before_lines("srun: job 1 queued\nn1:12:12 [0] NCCL INFO x=1\n"),
    "noise without a colon": _before_lines("srun: job 1 queued\nslurm: x=1\nslurmstepd: info x\n"),
    "an error before": lambda t: b"srun: error: n7: task 3: Killed\n" + t.encode(),
    "a long line": lambda t: b"x" * 1_000_000 + b"\n" + t.encode(),
    "long lines": lambda t: b"x" * 1_000_000 + b"\n" + t.encode() + b"y" * 3_000_000,
    "a progress bar": lambda t: b" 1%\r 2%\r" * 1000 + b"\n" + t.encode(),
    "no line end": lambda t: t.rstrip("\n").encode(),
}


def chosen(name: str, among: list[int], count: int) -> list[int]:
    """Return some places of a log, the same in every run."""
    return sorted(random.Random(name).sample(among, min(count, len(among))))
