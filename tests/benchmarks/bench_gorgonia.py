"""Gorgonia's nets beside layers from scratch in Go, numpy and torch: steps and memory on equal work.

Run by hand: `python tests/benchmarks/bench_gorgonia.py [--rounds 2]`. Builds the environments when the cache
has none; then it takes some two minutes on two quiet cores. Contenders are run as in `bench_go`, each a
process of its own; in every round each trains each case once, in a turning order, and what is compared is
the median step of a run with that of `go`, numpy and torch in the same round. The first losses must agree,
or the benchmark ends with exit code 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from bench_go import Run, prepare, train

from transect.engine.build_environment import build
from transect.training.frameworks import FRAMEWORKS

CONTENDERS = ("go-gorgonia", "go", "numpy", "torch")
# Workload, batch, threads, epochs; and how many losses are the same number in float32: roundings grow.
CASES = (("digits-cnn", 64, 1, 5), ("digits-cnn", 64, 2, 5), ("images-resnet20", 32, 1, 1))
HEADS = {"digits-cnn": 20, "images-resnet20": 2}


def table(case: tuple[str, int, int, int], runs: dict[str, list[Run]]) -> bool:
    """Print a row for each contender; return whether their first losses agree."""
    workload, batch, threads, _ = case
    head = slice(0, HEADS[workload])
    agree = True
    for name, own in runs.items():
        step = statistics.median(one.step for one in own)
        peak = statistics.median(one.peak for one in own)
        off = float(np.abs(own[0].losses[head] - runs["numpy"][0].losses[head]).max())
        agree &= off < 1e-3
        print(
            f"{workload:15s} batch {batch} threads {threads}  {name:11s} step {1e3 * step:9.2f} ms"
            f"  peak {peak / 1e6:7.1f} MB  losses off {off:.1e}"
        )
    for other in CONTENDERS[1:]:
        pairs = zip(runs["go-gorgonia"], runs[other], strict=True)
        ratios = [own.step / its.step for own, its in pairs]
        print(
            f"{workload:15s} batch {batch} threads {threads}  go-gorgonia / {other}:"
            f" {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )
    return agree


def main() -> int:
    """Build, prepare, take turns, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    programs: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in CONTENDERS:
            environment = FRAMEWORKS.get(name).environment
            facts = build(environment, folder / f"{environment}.log")
            if facts["status"] != "ok":
                sys.exit(f"{name}: environment '{environment}' {facts['message']}")
            programs[name] = facts["python"]
        prepare(programs["numpy"], folder, CASES)
        agree = True
        for case in CASES:
            runs: dict[str, list[Run]] = {name: [] for name in CONTENDERS}
            for turn in range(given.rounds):
                for name in np.roll(CONTENDERS, turn).tolist():
                    runs[name].append(train(name, case, folder, programs))
            agree &= table(case, runs)
        for name in CONTENDERS:
            print(f"libraries {name}: {runs[name][0].libraries}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
