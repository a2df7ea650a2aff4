"""Ways to distribute the same training on the same ranks, as ratios to all-reduce over MPI.

Run by hand: `python tests/benchmarks/bench_strategies.py [--repeats 5] [--ranks 2]
[--frameworks torch]`. Builds the environments when the cache has none.

A study of one workload with much to send (digits-mlp: 1.2 MB of gradient in each step) and one with
little (digits-cnn), whose cells run in shuffled order, so that a drift of the machine does not look
like a difference. Prints the median step time of each strategy over that of `mpi-allreduce` in the
same framework, with the range of the ratios of repeats; asserts nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from measuring import about, over, ran

STUDY = """
name: strategies
limits: {{seconds: 300, repeats_if_disturbed: 0}}
workloads:
  digits-mlp: {{epochs: 4}}
  digits-cnn: {{epochs: 5}}
train:
  repeats: {repeats}
  grids:
{grids}
"""
GRID = """    - workloads: [digits-mlp, digits-cnn]
      frameworks: [{framework}]
      strategies: [{strategies}]
      ranks: [{ranks}]"""
ROWS = {
    "torch": "mpi-allreduce, mpi-sendrecv, ddp-gloo, fsdp, horovod-gloo, horovod-mpi",
    "tensorflow": "mpi-allreduce, multiworker-ring, horovod-gloo, horovod-mpi",
    "mxnet": "mpi-allreduce, kvstore-dist-sync, horovod-gloo, horovod-mpi",
}
BASE = "mpi-allreduce"
Key = tuple[str, str, str]


def show(found: dict[Key, list[float]]) -> None:
    print("\nworkload    framework  strategy            step, us    over mpi-allreduce (range)")
    for (workload, framework, strategy), times in sorted(found.items()):
        base = found.get((workload, framework, BASE))
        text = over(times, base) if base else ""
        middle = 1e6 * statistics.median(times)
        print(f"{workload:11s} {framework:10s} {strategy:18s} {middle:9.0f}    {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--frameworks", nargs="+", choices=ROWS, default=[*ROWS])
    given = parser.parse_args()
    grids = [GRID.format(framework=name, strategies=ROWS[name], ranks=given.ranks) for name in given.frameworks]
    print(about())
    found: dict[Key, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        for record in ran(STUDY.format(repeats=given.repeats, grids="\n".join(grids)), Path(temporary)):
            cell = record["cell"]
            found[cell["workload"], cell["framework"], cell["strategy"]].append(record["values"]["step_time"])
    show(found)


if __name__ == "__main__":
    main()
