"""What simulating a step costs: processor seconds of `transect.simulation`, up to 131,072 ranks.

Run by hand: `python tests/benchmarks/bench_simulator.py [--ranks 131072] [--repeats 5]`, a minute at most. Goal:
10^5 ranks in less than 1 s. Times are the process's own (`time.process_time`), medians of the repeats, every rank
with a pace of its own, so that no shortcut for equal ranks helps. Beside them stand the cases that
SimGrid 4.1 was given (`tests/data/simulation/simgrid.json`, wall seconds there of a C++ program on one of the same two
shared cores, 2026-11-22), and what ASTRA-sim's analytical back end took for a ring (1,024 ranks 6 s, 4,096 ranks
125 s, wall, 2026-11). Asserts nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "simulation"))

from test_simulation_simgrid import CASES, name_of, simulated

from transect.simulation.collectives import ALLREDUCES
from transect.simulation.hierarchy import Hierarchy
from transect.simulation.networks import Machine, Network
from transect.simulation.pipelines import pipelined
from transect.simulation.steps import PATTERNS, hierarchical
from transect.simulation.work import Messages, Work

_GOAL_S = 1.0


def processor_s(work: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


def model(layers: int, gigabytes: float) -> Work:
    return Work(
        forward_s=np.full(layers, 0.1 / layers),
        backward_s=np.full(layers, 0.2 / layers),
        update_s=np.full(layers, 0.01 / layers),
        out_bytes=np.full(layers, 1e6),
        gradient_bytes=np.full(layers, gigabytes * 1e9 / layers),
    )


def steps(ranks: int) -> dict[str, Callable[[], object]]:
    machine = Machine(
        ranks, Network(5e-7, 2e-12, 1e-11), Network(2e-6, 8e-11, 1e-11), ranks_per_node=8, links_per_node=4
    )
    pace = np.exp(np.random.default_rng(0).normal(0.0, 0.02, ranks))
    bucketed = model(48, 0.2)
    ready: dict[str, Callable[[], object]] = {
        f"8 buckets behind backward, {name}": partial(
            PATTERNS["buckets"], bucketed, machine, Messages(allreduce=one, slower=pace)
        )
        for name, one in ALLREDUCES.items()
    }
    for name in ("allreduce", "fully-sharded", "bcast-reduce"):
        told = Messages(allreduce=ALLREDUCES["rabenseifner"], slower=pace)
        ready[name] = partial(PATTERNS[name], bucketed, machine, told)
    ready["8 layers by SC-OBR"] = partial(PATTERNS["overlap"], model(8, 0.2), machine, Messages(slower=pace))
    ready["hierarchical, groups of 8, 32 chunks"] = partial(
        hierarchical,
        model(8, 0.2),
        machine,
        Messages(slower=pace),
        root_updates=False,
        hierarchy=Hierarchy(group=8, chunk_bytes=0.2e9 / 32),
    )
    ready["1F1B, 8 stages, 16 micro-batches, replicas"] = partial(
        pipelined,
        model(48, 1.0),
        machine,
        Messages(allreduce=ALLREDUCES["rabenseifner"], slower=pace),
        cuts=tuple(range(6, 48, 6)),
        micro_batches=16,
        schedule="1f1b",
        behind=True,
    )
    return ready


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=131_072)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    print(f"{given.ranks:,} ranks, each with its own pace; processor s, median of {given.repeats}")
    for name, work in steps(given.ranks).items():
        seconds = processor_s(work, given.repeats)
        print(f"  {name:45} {seconds:8.3f}  {'' if seconds < _GOAL_S else 'over the goal'}")
    print("\ncases of SimGrid 4.1: processor s here, wall s there")
    for case in CASES:
        seconds = processor_s(partial(simulated, case), given.repeats)
        print(f"  {name_of(case):45} {seconds:10.5f} {case['wall_s']:8.2f}")


if __name__ == "__main__":
    main()
