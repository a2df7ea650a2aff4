"""Pipelines over MPI beside torch's own, and hybrids beside data parallelism where the network is slow.

Run by hand: `python tests/benchmarks/bench_pipeline.py [stages] [hybrid]`. Builds the environments
when the cache has none. Prints ratios with their ranges; asserts nothing.

`stages`: two ranks of one mpiexec train the same two stages by `mpi-pipeline` and by
torch.distributed.pipelining over gloo, on the same schedule, in turn (pipeline_contenders.py). Goal: at most
0.95 of torch's time. The share of CPU time is printed beside it, as ranks that wait may spin.

`hybrid`, as root: a virtual cluster of four nodes at 1 Gbit/s, one rank on each. A study trains
networks whose gradients outweigh their activations by DDP, Horovod, and stages with and without replicas;
its cells run in shuffled order, each held to the float64 reference (but those of the network of 1,001
layers, whose reference takes minutes). Goal: at most 0.6 of the best of DDP and Horovod.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from bench_grid import about

from checkouts import ROOT, environment_python
from clustered import ClusterCheckout
from clusters import VirtualCluster, why_not
from transect.domain.options import option_words
from transect.launch.launchers.mpiexec import mpiexec_prefix

STUDY = """
name: hybrid
limits: {{seconds: 900, memory_mb: 3200, repeats_if_disturbed: 0}}
workloads:
  digits-wide-mlp: {{epochs: 1, reference_steps: 10}}
  digits-resnet1001: {{epochs: 1, reference_steps: 0, test_fraction: 0.85}}
train:
  grids:
{grids}
"""
GRID = """    - workloads: [{workload}]
      frameworks: [torch]
      strategies: [{strategies}]
      options: [{options}]
      nodes: [4]
      networks: [1gbit]
      repeats: {repeats}"""
# Of pipeline_contenders.py, which only the environment `torch` can import.
CASES = ("digits-cnn", "digits-mlp", "digits-wide-mlp", "images-resnet20", "digits-resnet1001")
RIVALS = "ddp-gloo, horovod-gloo, horovod-mpi"
# Fewer micro-batches read the weights less often, more of them keep more stages busy.
OWN = (
    "{stages: 2, micro_batches: 1}",
    "{stages: 2, micro_batches: 2}",
    "{stages: 4, micro_batches: 2}",
    "{stages: 4, micro_batches: 4}",
)


def bench_stages(given: argparse.Namespace, folder: Path) -> None:
    """Run both contenders in turn and print their ratios."""
    python = environment_python("torch", folder)
    program = str(Path(python).parent / "mpiexec")
    command = [
        *mpiexec_prefix(program),
        "-n",
        "2",
        "--map-by",
        ":OVERSUBSCRIBE",
        python,
        str(Path(__file__).with_name("pipeline_contenders.py")),
        "--store",
        str(folder / "store"),
        "--rounds",
        str(given.rounds),
        "--cases",
        *given.cases,
        "--ours",
        *given.ours,
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    print("\nmpi-pipeline over torch.distributed.pipelining, 2 stages of 1 thread: goal 0.95")
    print("workload          batch  micro  schedule  options     torch, ms  ratio (range)      of CPU time")
    for line in run.stdout.splitlines():
        case = json.loads(line)
        base = case["times"].pop("torch")
        for name, times in case["times"].items():
            ratios = [a / b for a, b in zip(times, base, strict=True)]
            same = max(abs(a - b) for a, b in zip(case["losses"][name], case["losses"]["torch"], strict=True))
            print(
                f"{case['workload']:17s} {case['batch']:5d}  {case['micro_batches']:5d}  {case['schedule']:8s}"
                f"  {name:10s} {1e3 * statistics.median(base):10.2f}  "
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
                f"  {case['cpu'][name] / case['cpu']['torch']:11.2f}   losses within {same:.0e}"
            )
    if run.returncode:
        print(run.stderr)


def step_times(records: dict[str, dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return the median step times of repeats by workload and way."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records.values():
        if record["stage"] != "train":
            continue
        cell = record["cell"]
        way = " ".join([cell["strategy"], option_words(tuple(map(tuple, cell.get("options", []))))])
        if record["status"] != "ok":
            print(f"# {record['cell_id']}: {record['status']}: {record['message'].splitlines()[0]}")
            continue
        values = {one["name"]: one["value"] for one in record["metrics"]}
        found[cell["workload"]][way.strip()].append(values["step_time"])
    return found


def bench_hybrid(given: argparse.Namespace, folder: Path) -> None:
    """Run the study on a cluster of its own and print ratios to the best rival."""
    if why_not():
        print(f"hybrid: no cluster here: {why_not()}")
        return
    for name in ("base", "torch", "horovod-torch"):
        # Outside: the nodes see no package index.
        environment_python(name, folder)
    grids = []
    for workload in given.networks:
        repeats = given.repeats if workload == "digits-wide-mlp" else 1
        both = ((RIVALS, "{}"), ("mpi-pipeline", ", ".join(OWN)))
        grids += [GRID.format(workload=workload, strategies=a, options=b, repeats=repeats) for a, b in both]
    with VirtualCluster("bench", nodes=4, gpu_nodes=0, link=["net1g=1gbit"]) as cluster:
        checkout = ClusterCheckout(folder / "transect", cluster)
        checkout.study(STUDY.format(grids="\n".join(grids)))
        run = checkout.start("--config", "study=study.yaml", "system=virtual-cluster")
        said = run.ends(code=None, bound_s=3000)
        found = step_times(checkout.records("hybrid"))
    if not found:
        print(said)
    print("\nfour nodes at 1 Gbit/s, one rank each, batch of the workload: goal 0.6 of the best rival")
    print("workload           way                                  step, ms  over the best rival")
    for workload, ways in found.items():
        rivals = [times for way, times in ways.items() if not way.startswith("mpi-pipeline")]
        best = min(map(statistics.median, rivals), default=float("nan"))
        for way, times in sorted(ways.items()):
            middle = statistics.median(times)
            spread = f"({min(times) / best:.2f}-{max(times) / best:.2f})"
            print(f"{workload:18s} {way:34s} {1e3 * middle:10.1f}  {middle / best:.2f} {spread}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["stages", "hybrid"], help="stages, hybrid")
    parser.add_argument("--rounds", type=int, default=9, help="of stages: turns of each contender")
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--ours", nargs="+", default=["wait=sleep"], help="options of mpi-pipeline: name=value,…")
    parser.add_argument("--repeats", type=int, default=2, help="of hybrid: cells of each way")
    parser.add_argument("--networks", nargs="+", default=["digits-wide-mlp", "digits-resnet1001"])
    given = parser.parse_args()
    print(about())
    with tempfile.TemporaryDirectory() as folder:
        if "stages" in given.what:
            bench_stages(given, Path(folder))
        if "hybrid" in given.what:
            bench_hybrid(given, Path(folder))


if __name__ == "__main__":
    main()
