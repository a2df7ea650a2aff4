"""The docking kernel in each programming model, against the peak of the machine and miniBUDE's own build.

Run by hand, alone on the machine: `python tests/benchmarks/bench_docking.py [--threads 1 2] [--poses 8192]
[--rounds 5] [--deck FOLDER]`. Goal: the kernel in C at least 0.95 of miniBUDE's own OpenMP build where
`omp-bude` is on PATH; elsewhere its distance from the peak that chains of fused multiplications and
additions reach in the same run.

Each round takes all models by turns, in processes of their own; a model's time is the median of its
rounds' best runs. Every energy is checked before its time counts. Rates are by the published formula, with the
model's poses per work-item beside them: they are compared with the peak only, the models by time per pose.
Prints; asserts nothing of times.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from measuring import about, python_of

from transect.domain.cell import Cell
from transect.domain.paths import ROOT
from transect.hpc.base import Run, RunStatus
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest

MODELS: tuple[dict[str, int | str], ...] = (
    {"implementation": "openmp", "compiler": "gcc", "ppwi": 32, "pin": "close"},
    {"implementation": "openmp", "compiler": "gcc", "ppwi": 64, "pin": "close"},
    {"implementation": "openmp", "compiler": "gcc", "ppwi": 64},
    {"implementation": "openmp", "compiler": "clang", "ppwi": 64, "pin": "close"},
    {"implementation": "openmp", "compiler": "clang", "ppwi": 128, "pin": "close"},
    {"implementation": "rust", "ppwi": 32},
    {"implementation": "rust", "ppwi": 64},
    {"implementation": "opencl", "ppwi": 16},
    {"implementation": "numba"},
    {"implementation": "go"},
    {"implementation": "numpy"},
)
LOGS = Path(tempfile.gettempdir()) / f"bench-docking-{os.getpid()}"


def measure(options: dict[str, int | str], threads: int) -> Run:
    benchmark = BENCHMARKS.get("docking-probe")
    cell = Cell.of(stage="bench", benchmark="docking-probe", threads=threads, options=tuple(sorted(options.items())))
    python = python_of(str(benchmark.environment_of(cell)), LOGS)
    argv = benchmark.command(cell, LOGS, python, [])
    log = LOGS / "run.log"
    with log.open("w") as stream:
        kept = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": str(threads)}
        subprocess.run(argv, env=kept, stdout=stream, stderr=subprocess.STDOUT, check=False)
    (run,) = ingest([log], benchmark.parser)
    return run


def peak(threads: int) -> float:
    """Return the GFLOP/s in float32 that chains of fused operations reach."""
    program = Path(python_of("docking-c", LOGS)).parent / "transect-docking-peak"
    done = subprocess.run([program, str(threads)], capture_output=True, text=True, check=True)
    found = re.match(r"peak ([0-9.]+) GFLOP/s", done.stdout)
    if found is None:
        sys.exit(f"{program} said {done.stdout!r}")
    return float(found[1])


def minibude(deck: str, poses: int, threads: int) -> float | None:
    """Return the best time per pose of miniBUDE's OpenMP build over its sizes, in ns; None without it."""
    program = shutil.which("omp-bude")
    if program is None or not deck:
        return None
    argv = [program, "-i", "8", "-n", str(poses), "-p", "all", "--deck", deck]
    kept = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    log = LOGS / "minibude.log"
    with log.open("w") as stream:
        subprocess.run(argv, env=kept, stdout=stream, stderr=subprocess.STDOUT, check=False)
    times = [
        metric.value * 1e6 / poses
        for run in ingest([log], "minibude")
        if run.status is RunStatus.OK
        for metric in run.metrics
        if metric.name == "minimum_time"
    ]
    return min(times, default=None)


def main() -> int:
    """Measure and print; returns 1 when a model gave wrong energies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--poses", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--deck", default="", help="miniBUDE's data/bm1; default: a drawn one")
    given = parser.parse_args()
    LOGS.mkdir(exist_ok=True)
    print(about())
    wrong = 0
    for threads in given.threads:
        times: dict[str, list[float]] = defaultdict(list)
        rates: dict[str, list[float]] = defaultdict(list)
        missing: dict[str, str] = {}
        peaks, theirs = [], []
        for _ in range(given.rounds):
            peaks.append(peak(threads))
            if (own := minibude(given.deck, given.poses, threads)) is not None:
                theirs.append(own)
            for options in MODELS:
                name = " ".join(str(value) for value in options.values())
                run = measure(options | {"poses": given.poses, "deck": given.deck or "medium"}, threads)
                found = {metric.name: metric.value for metric in run.metrics}
                if run.status is RunStatus.OK:
                    times[name].append(found["pose-time_best"] * 1e9)
                    rates[name].append(found["kernel_best"] / 1e9)
                else:
                    missing[name] = f"{run.status}: {run.reason}"
                    wrong += "wrong" in run.reason
        top = statistics.median(peaks)
        print(f"\n{threads} threads: peak {top:.0f} GFLOP/s by fused operations (float32)")
        print(f"{'model':34s} {'us/pose':>9s} {'x fastest':>10s} {'GFLOP/s':>9s} {'of peak':>8s}")
        first = min((statistics.median(values) for values in times.values()), default=1.0)
        for name, values in sorted(times.items(), key=lambda one: statistics.median(one[1])):
            time, rate = statistics.median(values), statistics.median(rates[name])
            print(f"{name:34s} {time / 1e3:9.3f} {time / first:10.2f} {rate:9.1f} {rate / top:8.2f}")
        for name, why in missing.items():
            print(f"{name:34s} {why}")
        if theirs:
            best = min(statistics.median(v) for k, v in times.items() if k.startswith("openmp"))
            print(
                f"miniBUDE's OpenMP build: {statistics.median(theirs) / 1e3:.3f} us/pose; "
                f"ours is {statistics.median(theirs) / best:.2f} of its speed"
            )
        else:
            print("miniBUDE's OpenMP build: skipped, omp-bude is not on PATH or no --deck was given")
    shutil.rmtree(LOGS)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
