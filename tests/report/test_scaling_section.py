"""Scaling and communication beside ideals and bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from make_multi_node_records import write_multi_node_study
from said_of_records import Made, context, findings, prose

from factories import make_record, provenance, train_cell
from transect.analysis.groups import group_records
from transect.analysis.load import load_records
from transect.analysis.network import communications
from transect.analysis.scaling import efficiencies
from transect.domain.record import Record


def train(
    ranks: int,
    rate: float,
    repeat: int = 0,
    *,
    strategy: str = "mpi-allreduce",
    details: dict[str, Any] | None = None,
    metrics: dict[str, float] | None = None,
    **changes: Any,
) -> Record:
    cell = train_cell("torch", repeat, workload="w", strategy=strategy, ranks_per_node=ranks, batch=64)
    return make_record(
        cell,
        {
            "samples_per_second": rate,
            "step_time": 64 / rate,
            "compute_time": 32 / rate,
            "communication_time": 0.0,
            "input_time": 0.0,
            "accuracy": 0.9,
        }
        | (metrics or {}),
        details={"global_batch": 64, "over_subscribed": False} | (details or {}),
        provenance=provenance(**changes),
    )


def series(*rates: float, **how: Any) -> list[Record]:
    return [
        train(2**place, rate * (1 + repeat / 1000), repeat, **how)
        for place, rate in enumerate(rates)
        for repeat in range(3)
    ]


def raced(strategy: str, rate: float, seconds: float | None) -> list[Record]:
    reached = {} if seconds is None else {"time_to_quality": seconds, "steps_to_quality": 9.0}
    return [train(1, rate, n, strategy=strategy, metrics=reached) for n in range(3)]


# One rank that is no good base, by what is wrong with it.
BASES = {
    "disturbed": [train(1, 100, n, details={"disturbed": True}) for n in range(3)],
    "another processor": [train(1, 100, n, cpu_model="Old") for n in range(3)],
    "far apart": [train(1, 100), train(1, 130, 1), train(1, 101, 2)],
    "once": [train(1, 100)],
    "input": [train(1, 100, n, metrics={"input_time": 0.2}) for n in range(3)],
    "a good one": series(100),
}


def test_prose(snapshot: Any) -> None:
    sets = {
        "linear": series(100, 180, 300),
        "superlinear": superlinear(),
        "crowded": crowded(),
        "one rank": series(100),
    }
    fastest = [*raced("single", 100, 5), *raced("mpi-allreduce", 300, 7), *raced("ddp-gloo", 900, None)]
    texts: dict[str, Any] = {name: Made("scaling", *each).prose for name, each in sets.items()}
    texts["speed"] = Made("speed", *fastest).prose
    assert texts == snapshot


def test_who_shares_cores_has_no_efficiency() -> None:
    assert efficiencies(group_records(crowded()), None) == []


def superlinear() -> list[Record]:
    return [
        *series(100, strategy="single", details={"bytes_per_step": 1e6}),
        *[train(2, 260 + n, n, details={"bytes_per_step": 4e5}) for n in range(3)],
    ]


def crowded() -> list[Record]:
    return [*series(100), *(train(2, 90, n, details={"over_subscribed": True}) for n in range(3))]


KEY = "communication"


def test_prose_communication(tmp_path: Path, snapshot: Any) -> None:
    records = load_records(write_multi_node_study(tmp_path / "a")).records
    without = load_records(write_multi_node_study(tmp_path / "b", probes=False)).records
    sections = {key: Made(key, *records).prose for key in (KEY, "scaling")} | {"no probe": Made(KEY, *without).prose}
    assert prose({"nodes": records}, KEY, "scaling") | sections == snapshot
    assert KEY not in findings(*without)


def test_the_finding_names_the_largest_share_of_cells_that_do_not_share_cores(tmp_path: Path) -> None:
    records = load_records(write_multi_node_study(tmp_path)).records
    made = context(*records)
    rows = communications(made.of("train"), made.network_fits)
    assert (sum(row.group.over_subscribed for row in rows), len(rows)) == (4, 12)
    able = [row for row in rows if row.ratio is not None and not row.group.over_subscribed]
    top = max(able, key=lambda row: row.share or 0.0)
    assert (top.group.cell.strategy, top.group.cell.nodes) == ("mpi-sendrecv", 2)
    [finding] = findings(*records)[KEY]
    assert f"{100 * (top.share or 0):.0f} %" in finding.text and "2 nodes of 2 processes" in finding.text
