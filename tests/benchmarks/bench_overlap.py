"""S-Caffe's schemes: what overlapping a layer's messages with other layers' passes is worth.

Run by hand, alone on the machine, as root: `python tests/benchmarks/bench_overlap.py [--batches 256 512
1024] [--layers 12] [--width 768] [--rate 1gbit] [--steps 9] [--framework torch]`. Goals: SC-OBR at most
0.8 of SC-B, and at most 1.1 times the larger of computing and communication.

Two ranks of one thread talk by TCP over the loopback of a network namespace of their own, which `tc`
shapes to the rate (both directions share it); without a rate by shared memory, where cores copy and
nothing can hide. All contenders take a step each by turns in one start. `compute` is a step without
messages, `communication` its broadcasts and reductions, layer by layer, without computing. Prints medians
of the slowest rank, with what it waited in messages, and the two ratios; says how far weights of
contenders are apart at the end; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench_grid import about

from transect.domain.paths import ROOT
from transect.engine.build_environment import build
from transect.training.strategies._overlap import FEW_ROUNDS

CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SC-B": ("mpi-bcast-reduce", {}),
    "SC-OB, thread": ("mpi-overlap-bcast", {"progress": "thread"}),
    "SC-OBR, none": ("mpi-overlap", {}),
    "SC-OBR, test": ("mpi-overlap", {"progress": "test"}),
    "SC-OBR, thread": ("mpi-overlap", {"progress": "thread"}),
    "to all, none": ("mpi-overlap", {"reduce": "all"}),
    "to all, test": ("mpi-overlap", {"reduce": "all", "progress": "test"}),
    "to all, thread": ("mpi-overlap", {"reduce": "all", "progress": "thread"}),
}


def shape(rate: str) -> None:
    """Bring the loopback of this namespace up, shaped; its packets are 64 KiB at most."""
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"],
    ):
        subprocess.run(command, check=True)


def start(python: str, told: dict[str, Any], shaped: bool, seconds: float) -> dict[str, Any]:
    """Run two ranks; return what rank 0 printed."""
    prefix = [
        str(Path(python).parent / "mpiexec"),
        "--allow-run-as-root",
        "-n",
        str(told["ranks"]),
        "--map-by",
        ":OVERSUBSCRIBE",
    ]
    if shaped:
        prefix += ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "pml", "ob1"]
    ranks = str(Path(__file__).with_name("overlap_ranks.py"))
    run = subprocess.run(
        [*prefix, python, ranks, json.dumps(told)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | FEW_ROUNDS | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode or not lines:
        raise SystemExit(f"the ranks failed: {run.stderr[-3000:]}")
    return dict(json.loads(lines[-1]))


def show(batch: int, found: dict[str, Any]) -> None:
    """Print one table."""
    middle = {label: statistics.median(times) for label, times in found["times"].items()}
    most = max(middle["compute"], middle["communication"])
    sent = found["bytes"] / 1e6
    print(
        f"\nbatch {batch} of each rank, {sent:.0f} MB of weights, {sent:.0f} MB of gradients; weights apart {found['apart']:.1e}"
    )
    print("                       step, ms   waited, ms   over SC-B   over max(compute, communication)")
    for label, seconds in middle.items():
        waited = found["waited"].get(label)
        text = f"{1e3 * statistics.median(waited):10.1f}" if waited else " " * 10
        print(f"{label:20s} {1e3 * seconds:10.1f}   {text}   {seconds / middle['SC-B']:9.2f}   {seconds / most:9.2f}")


def main() -> None:
    """Go into a namespace of its own, then start ranks for each batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 512, 1024])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rate", default="1gbit", help="as tc takes it; `none`: shared memory")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--framework", default="torch", choices=("torch", "numpy"))
    parser.add_argument("--seconds", type=float, default=600, help="after which ranks are ended")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    shaped = given.rate != "none"
    if given.inside is None:
        print(about())
        with tempfile.TemporaryDirectory() as temporary:
            name = "torch" if given.framework == "torch" else "base"
            python = str(build(name, Path(temporary) / "log")["python"])
        again = [sys.executable, __file__, *sys.argv[1:], "--inside", python]
        enter = ["unshare", "--net"] if shaped else []
        raise SystemExit(subprocess.run([*enter, *again], check=False).returncode)
    if shaped:
        shape(given.rate)
    for batch in given.batches:
        told = {
            "batch": batch,
            "layers": given.layers,
            "width": given.width,
            "steps": given.steps,
            "framework": given.framework,
            "ranks": given.ranks,
            "contenders": CONTENDERS,
        }
        show(batch, start(given.inside, told, shaped, given.seconds))


if __name__ == "__main__":
    main()
