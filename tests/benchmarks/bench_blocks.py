"""What Slurm costs: cells of two seconds on four nodes, in one allocation block and as own jobs.

Run by hand, as root: `python tests/benchmarks/bench_blocks.py [--cells 100] [--alone 10]`. Makes a
virtual cluster of four nodes and takes it down; builds the base environment when the cache has
none.

A cell is a job step of four ranks, one per node, that sleeps for two seconds. The ratio is the wall
time of the whole `snakemake` call, start-up, submission and report included, over the cells'
payload time (2 s each). The baseline is the same with `cells_per_job: 1`, on fewer cells: its time
is proportional to them. Prints both; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from clustered import ClusterCheckout
from clusters import VirtualCluster, why_not
from transect.engine.build_environment import build

SECONDS = 2.0
PLUGIN = '''
"""A benchmark that sleeps, and prints a log so that its record is ok."""

from pathlib import Path

from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark

CODE = (
    "import os, sys, time; time.sleep({seconds});"
    "os.environ.get('SLURM_PROCID') == '0' and print(open(sys.argv[1]).read())"
)


@BENCHMARKS.register("sleeps")
class Sleeps(Benchmark):
    name = "sleeps"
    parser = "memory-bandwidth-probe"
    environment = "base"
    prefix_starts_ranks = True

    def supports(self, cell):
        return None

    def command(self, cell, folder, python, mpiexec):
        return [*mpiexec, python, "-c", CODE, {log!r}]

    def logs(self, folder):
        return [folder / "output.log"]

    def code_files(self):
        return [Path(__file__)]
'''
STUDY = """
name: {name}
plugins: [plugins]
limits: {{seconds: 20, repeats_if_disturbed: 0}}
bench:
  repeats: {cells}
  grids: [{{benchmarks: [sleeps], nodes: [4]}}]
"""


def measure(checkout: ClusterCheckout, name: str, cells: int, per_job: int | None) -> float:
    """Run the study once; return the wall time of the call in s."""
    checkout.study(STUDY.format(name=name, cells=cells), f"{name}.yaml")
    text = (checkout.folder / "config/systems/virtual-cluster.yaml").read_text()
    limit = f"cells_per_job: {per_job}\n" if per_job else ""
    (checkout.folder / f"{name}-system.yaml").write_text(text + limit)
    begin = time.monotonic()
    run = checkout.start("--config", f"study={name}.yaml", f"system={name}-system.yaml")
    run.ends(bound_s=60 + 20 * cells)
    wall = time.monotonic() - begin
    records = checkout.records(name)
    assert len(records) == cells and all(r["status"] == "ok" for r in records.values())
    added = sorted(r["details"]["payload_s"] - SECONDS for r in records.values())
    payload = cells * SECONDS
    jobs = len(list((checkout.folder / "results" / name / "blocks").glob("*/*.json")))
    print(
        f"{name}: {cells} cells in {jobs} jobs, payload {payload:.0f} s, wall {wall:.1f} s, "
        f"ratio {wall / payload:.2f}; srun and ranks add {added[len(added) // 2]:.2f} s a cell "
        f"(median)"
    )
    return wall / payload


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--alone", type=int, default=10)
    given = parser.parse_args()
    if why_not():
        print(f"bench_blocks: no cluster here: {why_not()}")
        return 0
    with tempfile.TemporaryDirectory() as scratch, VirtualCluster("bench", gpu_nodes=0) as cluster:
        facts = build("base", Path(scratch) / "base.log")
        assert facts["status"] == "ok", facts["message"]
        checkout = ClusterCheckout(Path(scratch) / "transect", cluster)
        log = next((checkout.folder / "config/studies/quick-logs").glob("memory-bandwidth-probe.txt"))
        plugins = checkout.folder / "plugins"
        plugins.mkdir()
        (plugins / "sleeps.py").write_text(PLUGIN.format(seconds=SECONDS, log=str(log)))
        together = measure(checkout, "block", given.cells, None)
        alone = measure(checkout, "alone", given.alone, 1)
        print(json.dumps({"block": round(together, 2), "alone": round(alone, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
