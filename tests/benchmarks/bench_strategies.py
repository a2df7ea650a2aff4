"""Ways to distribute the same training on the same ranks, as ratios to all-reduce over MPI.

Run by hand: `python tests/benchmarks/bench_strategies.py [--repeats 5] [--ranks 2]
[--frameworks torch]`. Builds the environments when the cache has none, and prints what building
them took.

A study of one workload with much to send (digits-mlp: 1.2 MB of gradient in each step) and one with
little (digits-cnn), whose cells run in shuffled order, so that a drift of the machine does not look
like a difference. Prints the median step time of each strategy over that of `mpi-allreduce` in the
same framework, with the range of the ratios of repeats; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from bench_grid import about

from transect.domain.paths import ROOT, environments_folder
from transect.planning.environments import environment_folder, environment_names

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


def step_times(results: Path) -> dict[Key, list[float]]:
    """Return the median step time of each repeat by workload, framework and strategy."""
    found: dict[Key, list[float]] = defaultdict(list)
    for path in sorted(results.glob("strategies/train/*/record.json")):
        record = json.loads(path.read_text())
        cell = record["cell"]
        if record["status"] != "ok":
            print(f"# {record['cell_id']}: {record['status']}: {record['message'].splitlines()[0]}")
            continue
        values = {one["name"]: one["value"] for one in record["metrics"]}
        found[cell["workload"], cell["framework"], cell["strategy"]].append(values["step_time"])
    return found


def show(found: dict[Key, list[float]]) -> None:
    """Print one row for each strategy."""
    print("\nworkload    framework  strategy            step, us    over mpi-allreduce (range)")
    for (workload, framework, strategy), times in sorted(found.items()):
        base = found.get((workload, framework, BASE))
        text = ""
        if base:
            ratios = [a / b for a in times for b in base]
            middle = statistics.median(times) / statistics.median(base)
            text = f"{middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        middle = 1e6 * statistics.median(times)
        print(f"{workload:11s} {framework:10s} {strategy:18s} {middle:9.0f}    {text}")


def show_builds() -> None:
    """Print what building each environment took, as its folder tells."""
    print(f"\nenvironment          built in, s   of it compiling, s   ({len(environment_names())})")
    for name in environment_names():
        path = environment_folder(name) / "transect-complete.json"
        if not path.is_file():
            continue
        facts = json.loads(path.read_text())
        text = "-"
        if "compile_s" in facts:
            text = f"{facts['compile_s']:.0f} (wheel from the {facts['wheel_from']})"
        print(f"{name:20s} {facts['build_s']:11.0f}   {text}")
    print(f"in {environments_folder().name}/")


def main() -> None:
    """Run the study in a temporary results folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--frameworks", nargs="+", choices=ROWS, default=[*ROWS])
    given = parser.parse_args()
    grids = [GRID.format(framework=name, strategies=ROWS[name], ranks=given.ranks) for name in given.frameworks]
    print(about())
    with tempfile.TemporaryDirectory() as temporary:
        study = Path(temporary) / "strategies.yaml"
        study.write_text(STUDY.format(repeats=given.repeats, grids="\n".join(grids)))
        snakemake = Path(sys.executable).parent / "snakemake"
        subprocess.run(
            [
                str(snakemake),
                "--profile",
                "profiles/local",
                "--config",
                f"study={study}",
                f"results={temporary}/results",
            ],
            cwd=ROOT,
            env=os.environ,
            check=True,
            stderr=subprocess.DEVNULL,
        )
        show(step_times(Path(temporary) / "results"))
    show_builds()


if __name__ == "__main__":
    main()
