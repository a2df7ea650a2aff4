"""Plans by the profiles of a study's results: which are taken, and what a damaged one costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from factories import bare_record, bench_cell, write_records
from transect.cli.planned_training import Wanted, answer
from transect.domain.axes.train import ProfileCell
from transect.domain.errors import BadInput
from transect.domain.record import LogPoint, MetricValue
from transect.planner.problem import Link

PROFILES = "profiles of micro-batches of"


def profiled(folder: Path, ranks: int, batch: int) -> Path:
    """A profile whose layers take as many seconds as ranks took it at once."""
    cell = ProfileCell(workload="digits-mlp", framework="numpy", batch=batch, ranks_per_node=ranks, precision="fp32")
    place = write_records(folder, bare_record(cell)) / "profile" / cell.id
    row = {"forward_s": [ranks], "backward_s": [ranks], "update_s": [0.0]}
    sizes = dict.fromkeys(("weight_bytes", "kept_bytes", "out_bytes"), 8)
    layers = [{"name": str(n), **row, **sizes} for n in range(6)]
    (place / "profile.json").write_text(json.dumps({"batch": batch, "layers": layers}))
    return place / "profile.json"


def test_profiles_by_other_numbers_of_ranks_at_once_are_not_mixed(tmp_path):
    for ranks, batch in ((1, 16), (1, 64), (2, 8), (4, 4)):
        profiled(tmp_path, ranks, batch)
    wanted = Wanted(workload="digits-mlp", framework="numpy", ranks=2, results=tmp_path, mode="data")
    assert answer(wanted).costs.startswith(f"{PROFILES} 8 ")
    assert answer(replace(wanted, ranks=8)).costs.startswith(f"{PROFILES} 16, 64 ")


@pytest.mark.parametrize("text", [None, "{}", "[]", "{", '{"batch": 8, "layers": [{"name": "0"}]}'])
def test_a_damaged_profile_is_named(tmp_path, text):
    file = profiled(tmp_path, 1, 8)
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(BadInput, match=r"profile\.json"):
        answer(Wanted(workload="digits-mlp", framework="numpy", ranks=2, results=tmp_path))


def test_profiles_of_an_earlier_call_are_left_out_where_others_are_asked_for(tmp_path):
    left, chosen = profiled(tmp_path, 2, 64), profiled(tmp_path, 1, 8)
    wanted = Wanted(
        workload="digits-mlp",
        framework="numpy",
        ranks=2,
        results=tmp_path,
        mode="data",
        profiles=frozenset({chosen.parent.name}),
    )
    assert answer(wanted).costs.startswith(f"{PROFILES} 8 ")
    everything = answer(replace(wanted, profiles=None)).costs
    assert left.exists() and everything.startswith(f"{PROFILES} 64 ")


def probed(folder: Path, nodes: int, network: str | None, latency_s: float) -> None:
    """A network-probe's record."""
    metrics = [
        MetricValue.of("message_time", latency_s + size / 1e9, log=LogPoint(series="pingpong_median", size=size))
        for size in (4, 1024, 262144)
    ]
    write_records(folder, bare_record(bench_cell("network-probe", nodes=nodes, network=network), metrics))


def test_of_several_probed_networks_none_is_taken_unasked(tmp_path):
    profiled(tmp_path, 1, 8)
    probed(tmp_path, 2, "slow", 0.5)
    wanted = Wanted(workload="digits-mlp", framework="numpy", ranks=2, nodes=2, results=tmp_path)
    assert answer(wanted).machine.between.alpha_s == pytest.approx(0.5)
    probed(tmp_path, 2, "fast", 1e-6)
    with pytest.raises(BadInput, match=r"\(fast, slow\): .*--link"):
        answer(wanted)
    assert answer(replace(wanted, link=Link(0.1, 0.0))).machine.between == Link(0.1, 0.0)
    assert answer(replace(wanted, nodes=1)).machine.source.endswith("messages as probed")


def test_the_sweep_that_a_prediction_takes_tells_a_plan_too(tmp_path):
    profiled(tmp_path, 1, 8)
    for test, seconds in (("bcast", 9.0), ("latency", 0.25)):
        cell = bench_cell("message-sweep", {"seconds": 5, "test": test}, nodes=2)
        series = {str(size): {"values": [1e6 * (seconds + size / 1e9)] * 3} for size in (4, 1024, 1 << 20)}
        write_records(tmp_path, bare_record(cell, details={"runs": [{"samples": series}]}))
    wanted = Wanted(workload="digits-mlp", framework="numpy", ranks=2, nodes=2, results=tmp_path)
    assert answer(wanted).machine.between.alpha_s == pytest.approx(0.25)
