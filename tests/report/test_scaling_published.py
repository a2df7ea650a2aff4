"""Scaling and communication beside ideals and bounds; published figures, computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from make_multi_node_records import write_multi_node_study
from said_of_records import Made, context, findings, prose

from factories import make_record, provenance, train_cell
from transect.analysis.groups import group_records
from transect.analysis.load import load_records
from transect.analysis.network import communications
from transect.analysis.scaling import efficiencies
from transect.domain.record import Record
from transect.report.topics.study.published import figures_of


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
MEANT = {"stage": "train", "metric": "samples_per_second", "ranks_per_node": 2}
# What a study may name beside a figure: two of them can be computed.
MEASURED: list[Any] = [
    MEANT,
    {**MEANT, "over": {"ranks_per_node": 1}},
    1.9,
    "1.9",
    None,
    {**MEANT, "ranks_per_node": 3},
    {"stage": "train", "metric": "samples_per_second"},
    {**MEANT, "metric": "speed"},
    {**MEANT, "over": {"ranks_per_node": 9}},
    {**MEANT, "over": "one"},
    {**MEANT, "metric": "communication_time", "over": {"ranks_per_node": 1}},
]


def published() -> Made:
    given = [
        {"study": "A", "what": "b", "published": 90, "measured": cell, "note": "other <machine>"} for cell in MEASURED
    ]
    return Made("published", *series(100, 180), published=given)


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
    texts["published"] = published().prose
    assert texts == snapshot


def test_only_what_names_one_cell_is_set_beside_a_published_figure() -> None:
    found = figures_of(published().context)
    assert [figure.measured is not None for figure in found] == [True, True] + [False] * (len(MEASURED) - 2)
    assert found[0].measured.value == pytest.approx(180.18) and found[0].beside.value == pytest.approx(2.002)
    assert found[1].measured.value == pytest.approx(1.8, rel=1e-3)
    assert all(figure.why and figure.beside is None for figure in found[2:])
    assert efficiencies(group_records(crowded()), None) == []


def superlinear() -> list[Record]:
    return [
        *series(100, strategy="single", details={"bytes_per_step": 1e6}),
        *[train(2, 260 + n, n, details={"bytes_per_step": 4e5}) for n in range(3)],
    ]


def crowded() -> list[Record]:
    return [*series(100), *(train(2, 90, n, details={"over_subscribed": True}) for n in range(3))]


def test_no_study_of_ours_types_what_it_measured() -> None:
    from transect.domain.paths import ROOT
    from transect.domain.strict_yaml import load_yaml

    for path in sorted((ROOT / "config/studies").glob("*.yaml")):
        for given in load_yaml(path).get("published", []):
            assert isinstance(given.get("measured"), dict | None), f"{path.name}: {given}"


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
