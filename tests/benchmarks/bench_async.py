"""Time to quality of asynchronous updates against all-reduce over MPI, on equal ranks; also with a slow one.

Run by hand, alone on the machine: `python tests/benchmarks/bench_async.py [--repeats 5] [--ranks 3]
[--slow 3] [--workloads digits-mlp digits-cnn] [--epochs 6]`.

One study in numpy, whose cells run in shuffled order: `mpi-allreduce` on as many ranks and on as many as the
server has workers, `async` with staleness 0, 2, 8 and without a bound. Then all of it again with a last rank that
takes `--slow` times as long for its passes: it sleeps for the rest. The batch is the least multiple of all
numbers of replicas from the workload's own on. Prints for each the median time to quality, its ratio to all-reduce on as
many ranks in the same setting with the range over repeats, the accuracy at the end, and how stale gradients were; says
who did not reach the target; asserts nothing. On fewer cores than ranks the ratios say little, and it says so.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measuring import about, over, ran

from transect.training.workloads import WORKLOADS

PLUGIN = '''
"""numpy whose last rank is slow."""

import os
import time

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework

LAST = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")) - 1
SLOW = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0")) == LAST


class Slow(NumpyTrainer):
    def forward_backward(self, x, y):
        begin = time.perf_counter()
        loss = super().forward_backward(x, y)
        if SLOW:
            time.sleep((FACTOR - 1) * (time.perf_counter() - begin))
        return loss


@FRAMEWORKS.register("numpy-one-slow")
class OneSlow(NumpyFramework):
    """Its last rank takes several times as long."""

    def trainer(self, plan):
        return Slow(plan)
'''
STUDY = """
name: async
plugins: [plugins]
limits: {{seconds: 600, repeats_if_disturbed: 0}}
workloads:
{workloads}
train:
  repeats: {repeats}
  grids:
{grids}
"""
GRID = """    - workloads: [{workload}]
      frameworks: [numpy, numpy-one-slow]
      strategies: [mpi-allreduce]
      ranks: [{workers}, {ranks}]
      batches: [{batch}]
    - workloads: [{workload}]
      frameworks: [numpy, numpy-one-slow]
      strategies: [async]
      ranks: [{ranks}]
      batches: [{batch}]
      options: [{{staleness: 0}}, {{staleness: 2}}, {{staleness: 8}}, {{staleness: null}}]"""
Key = tuple[str, str, str]


def batch_of(workload: str, ranks: int) -> int:
    """Return the least batch from the workload's own on that both numbers of replicas divide."""
    step = math.lcm(ranks, ranks - 1)
    return -(-WORKLOADS.get(workload).defaults.batch // step) * step


def study_text(given: argparse.Namespace) -> str:
    grids = [
        GRID.format(workload=name, ranks=given.ranks, workers=given.ranks - 1, batch=batch_of(name, given.ranks))
        for name in given.workloads
    ]
    workloads = [f"  {name}: {{epochs: {given.epochs}}}" for name in given.workloads]
    return STUDY.format(repeats=given.repeats, grids="\n".join(grids), workloads="\n".join(workloads))


def name_of(cell: dict[str, Any], ranks: int) -> str:
    """Name a way to train, such as `async, staleness 2`."""
    if cell["strategy"] != "async":
        return "all-reduce" if cell["ranks_per_node"] == ranks else "all-reduce, one rank less"
    return f"async, staleness {dict(cell['options']).get('staleness', 2)}"


def read(records: Iterable[dict[str, Any]], ranks: int) -> dict[Key, list[dict[str, float]]]:
    """Return the metrics of each repeat by workload, framework and way to train."""
    found: dict[Key, list[dict[str, float]]] = defaultdict(list)
    for record in records:
        cell = record["cell"]
        if record["details"]["over_subscribed"]:
            print(f"# {record['cell_id']}: ranks share cores")
        found[cell["workload"], cell["framework"], name_of(cell, ranks)].append(record["values"])
    return found


def show(found: dict[Key, list[dict[str, float]]]) -> None:
    print(
        f"\n{'workload':11s} {'framework':15s} {'way':28s} {'to quality':>10s}  over all-reduce (range)   "
        "accuracy  staleness (95 %)"
    )
    for (workload, framework, way), runs in sorted(found.items()):
        times = [run["time_to_quality"] for run in runs if "time_to_quality" in run]
        base = [
            run["time_to_quality"]
            for run in found.get((workload, framework, "all-reduce"), ())
            if "time_to_quality" in run
        ]
        took = f"{statistics.median(times):8.3f} s" if times else "         -"
        told = over(times, base) if times and base else ""
        if len(times) < len(runs):
            told += f" reached in {len(times)} of {len(runs)}"
        accuracy = statistics.median(run["accuracy"] for run in runs)
        stale = [run["staleness"] for run in runs if "staleness" in run]
        late = [run["staleness_p95"] for run in runs if "staleness_p95" in run]
        how = f"{statistics.median(stale):g}" if stale else ""
        how += f" ({statistics.median(late):g})" if late else ""
        print(f"{workload:11s} {framework:15s} {way:28s} {took}  {told:24s} {accuracy:8.3f}  {how}")


def main() -> int:
    """Run the study in a temporary folder; 0 when it ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=3, help="the server among them")
    parser.add_argument("--slow", type=float, default=3.0, help="of the slow rank's passes")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--workloads", nargs="+", default=["digits-mlp", "digits-cnn"])
    given = parser.parse_args()
    if given.ranks < 3:
        parser.error(f"--ranks {given.ranks}: expected a server and two workers, at least 3")
    print(about())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plugins").mkdir()
        plugin = PLUGIN.replace("FACTOR - 1", f"{given.slow} - 1")
        (folder / "plugins" / "one_slow.py").write_text(plugin)
        show(read(ran(study_text(given), folder), given.ranks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
