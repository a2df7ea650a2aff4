"""The simulator against SimGrid, message by message: the same programs, the same platform."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transect.simulation.collectives import ALLREDUCES, bcast_binomial, reduce_binomial, ring
from transect.simulation.hierarchy import Hierarchy
from transect.simulation.networks import Clocks, Machine, Network
from transect.simulation.pipelines import Pipeline
from transect.simulation.steps import buckets
from transect.simulation.work import Messages, Work

DATA = Path(__file__).resolve().parents[2] / "data" / "simulation" / "simgrid.json"
CASES = json.loads(DATA.read_text())["cases"]
# What SimGrid's default model makes of a link's latency and bandwidth (its documentation, LV08).
LATENCY, BANDWIDTH, ACKNOWLEDGED = 13.01, 0.97, 1.05


def machine_of(case: dict[str, Any]) -> Machine:
    """A route has two links; of one between ranks of a node there is one."""
    slower = (ACKNOWLEDGED if case.get("cross", 1) else 1.0) / BANDWIDTH
    gamma = case.get("gamma", 0.0)

    def network(latency_s: float, rate: float) -> Network:
        return Network(LATENCY * latency_s, slower / rate, gamma)

    between = network(2 * case.get("latency_s", 1e-6), case.get("rate", 12.5e9))
    if "node" not in case:
        return Machine.flat(case["ranks"], between)
    inside = network(case["inside_latency_s"], case["inside_rate"])
    return Machine(case["ranks"], inside, between, ranks_per_node=case["node"], links_per_node=1)


def simulated(case: dict[str, Any]) -> float:
    machine, size, kind = machine_of(case), case["bytes"], case["kind"]
    ranks = case["ranks"]
    clocks: Clocks = case.get("skew", 0.0) * (np.arange(ranks) * 7919 % 97) / 97
    match kind:
        case "bcast":
            return float(bcast_binomial(clocks, size, machine).max())
        case "reduce":
            return float(reduce_binomial(clocks, size, machine).max())
        case "hierarchical":
            tree = Hierarchy(group=case["group"], chunk_bytes=size / case["chunks"])
            return float(tree.reduce(clocks, size, machine).max())
        case "gpipe" | "1f1b":
            run = Pipeline(
                stages=ranks,
                micro_batches=case["micro"],
                schedule=kind,
                forward_s=np.full(ranks, case["forward_s"]),
                backward_s=np.full(ranks, case["backward_s"]),
                passed_bytes=np.full(ranks - 1, size),
                networks=(machine.between,) * (ranks - 1),
            ).run()
            return float(run.ends.max())
        case "buckets":
            count, nothing = case["chunks"], np.zeros(case["chunks"])
            work = Work(
                forward_s=nothing,
                backward_s=np.full(count, case["backward_s"] / count),
                update_s=nothing,
                gradient_bytes=np.full(count, size / count),
                out_bytes=nothing,
            )
            each = size / count
            messages = Messages(allreduce=ring, bucket_bytes=each, first_bucket_bytes=each)
            return buckets(work, machine, messages).seconds
    return float(ALLREDUCES[kind](clocks, size, machine).max())


def name_of(case: dict[str, Any]) -> str:
    return f"{case['kind']}-{case['ranks']}-{case['bytes']:g}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_case_takes_as_long_as_in_simgrid(case):
    # SimGrid solves shares to a precision of 1e-5; its clocks have as many digits.
    assert simulated(case) == pytest.approx(case["seconds"], rel=1e-5)


def test_there_are_twenty_cases_of_every_kind():
    assert len(CASES) >= 20
    kinds = {case["kind"] for case in CASES}
    assert kinds == {*ALLREDUCES, "bcast", "reduce", "hierarchical", "gpipe", "1f1b", "buckets"}


def test_another_algorithm_would_be_seen():
    case = next(case for case in CASES if case["kind"] == "rabenseifner")
    doubling = simulated(case | {"kind": "recursive-doubling"})
    assert abs(doubling / case["seconds"] - 1) > 0.1
