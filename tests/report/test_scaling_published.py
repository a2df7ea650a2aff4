"""Scaling: ideal, efficiencies with their bases, what may be behind too much; published figures, computed."""

from __future__ import annotations

from typing import Any

import pytest
from pages import Page
from said_of_records import rows

from factories import make_record, provenance, train_cell
from transect.analysis.bounds import Rates
from transect.analysis.groups import group_records
from transect.analysis.load import Loaded
from transect.analysis.scaling import efficiencies
from transect.analysis.superlinear import possible_causes
from transect.domain.record import Record
from transect.report.blocks import Chart, Prose, Table
from transect.report.context import Context
from transect.report.sections.published import figures_of, published_body
from transect.report.sections.scaling import scaling_body
from transect.report.sections.throughput import both_table


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


def parts(records: list[Record], **how: Any) -> list[Any]:
    return list(scaling_body(Context(Loaded(study="s", records=records), title="t", **how)))


def test_a_speed_up_stands_beside_its_base_and_the_ideal() -> None:
    made = parts(series(100, 180, 300))
    charts = [part for part in made if isinstance(part, Chart)]
    assert [chart.title for chart in charts] == [
        "Speed-up over 1 rank",
        "Throughput over ranks",
        "What a step consists of, over ranks",
    ]
    assert "ideal" in " ".join(item.text for item in charts[0].legend)
    drawn = rows(charts[0].table)
    assert [(row["Ranks"], row["Ideal"], row["Base"]) for row in drawn] == [
        ("2", "2", "mpi-allreduce, 1 rank"),
        ("4", "4", "mpi-allreduce, 1 rank"),
    ]
    assert [row["Efficiency"] for row in drawn] == ["90 %", "75 %"]
    [table] = [part for part in made if isinstance(part, Table)]
    assert [row["Base"] for row in rows(table)] == ["torch · mpi-allreduce · 1 rank"] * 2
    assert "May be behind it" not in rows(table)[0]


def test_prose(snapshot: Any) -> None:
    sets = {
        "linear": series(100, 180, 300),
        "superlinear": superlinear(),
        "crowded": crowded(),
        "one rank": series(100),
    }
    told = {name: [said for part in parts(each) if (said := prose(part))] for name, each in sets.items()}
    told["causes"] = [cause for base, _ in BASES for cause in causes(base)]
    told["nothing to compare"] = [figure(measured)[0].why for measured, _ in LACKING]
    assert told == snapshot


def prose(part: Any) -> str:
    """Return what a part of the section says."""
    if isinstance(part, Chart):
        return f"chart: {part.title} {part.note}".strip()
    return part.caption or part.folded if isinstance(part, Table) else getattr(part, "text", "") or part.empty


def superlinear() -> list[Record]:
    return [
        *series(100, strategy="single", details={"bytes_per_step": 1e6}),
        *[train(2, 260 + n, n, details={"bytes_per_step": 4e5}) for n in range(3)],
    ]


def test_superlinear_is_flagged_with_what_may_be_behind_it() -> None:
    made = parts(superlinear())
    [table] = [part for part in made if isinstance(part, Table)]
    [row] = rows(table)
    assert row[""] == "superlinear"
    assert "path: single" in row["May be behind it"] and "40 %" in row["May be behind it"]


# One rank that is no good base, and a word for what is wrong with it.
BASES: list[tuple[list[Record], str]] = [
    ([train(1, 100, n, details={"disturbed": True}) for n in range(3)], "disturbed"),
    ([train(1, 100, n, cpu_model="Old") for n in range(3)], "its cpu model"),
    ([train(1, 100), train(1, 130, 1), train(1, 101, 2)], "30 % apart"),
    ([train(1, 100)], "1 runs only"),
    ([train(1, 100, n, metrics={"input_time": 0.2}) for n in range(3)], "31 %"),
]


def causes(base: list[Record]) -> list[str]:
    [gain] = efficiencies(group_records([*base, *(train(2, 300 + n, n) for n in range(3))]), None)
    assert gain.superlinear
    return possible_causes(gain, Rates([]))


@pytest.mark.parametrize(("base", "word"), BASES)
def test_each_cause_is_seen_in_the_records(base: list[Record], word: str) -> None:
    [cause] = causes(base)
    assert word in cause


def test_no_cause_is_made_up() -> None:
    assert causes(series(100)) == []


def crowded() -> list[Record]:
    return [*series(100), *(train(2, 90, n, details={"over_subscribed": True}) for n in range(3))]


def test_ranks_that_share_cores_have_no_efficiency_and_a_single_number_of_ranks_no_chart() -> None:
    assert efficiencies(group_records(crowded()), None) == []
    said = [part.text for part in parts(crowded()) if isinstance(part, Prose)]
    assert any("no efficiency" in text for text in said)
    [lead] = parts(series(100))
    assert "nothing scales" in lead.empty


MEANT = {"stage": "train", "metric": "samples_per_second", "ranks_per_node": 2}


def figure(measured: Any, published: Any = 2.0) -> Any:
    given = {"study": "A", "what": "b", "published": published, "measured": measured}
    context = Context(Loaded(study="s", records=series(100, 180)), title="t", published=[given])
    [found] = figures_of(context)
    table = next(part for part in published_body(context) if isinstance(part, Table))
    return found, rows(table)[0]


def test_a_published_figure_stands_beside_the_cell_that_is_meant() -> None:
    found, row = figure(MEANT, published=90)
    assert found.measured.value == pytest.approx(180.18)
    assert found.beside.value == pytest.approx(2.002)
    assert row["Runs"] == "3"


def test_a_published_ratio_stands_beside_the_ratio_of_two_cells() -> None:
    found, _ = figure({**MEANT, "over": {"ranks_per_node": 1}})
    assert found.measured.value == pytest.approx(1.8, rel=1e-3)
    assert found.beside.low < found.beside.value < found.beside.high


# What a study may name beside a figure, and a word for why it is not compared.
LACKING: list[tuple[Any, str]] = [
    (1.9, "typed by hand"),
    ("1.9", "typed by hand"),
    (None, "names no cell"),
    ({**MEANT, "ranks_per_node": 3}, "no record"),
    ({"stage": "train", "metric": "samples_per_second"}, "2 cells of"),
    ({**MEANT, "metric": "speed"}, "called speed"),
    ({**MEANT, "over": {"ranks_per_node": 9}}, "over: no record"),
    ({**MEANT, "over": "one"}, "no mapping"),
    ({**MEANT, "metric": "communication_time", "over": {"ranks_per_node": 1}}, "not above 0"),
]


@pytest.mark.parametrize(("measured", "word"), LACKING)
def test_what_cannot_be_computed_says_why_and_is_compared_with_nothing(measured: Any, word: str) -> None:
    found, row = figure(measured)
    assert found.measured is None and found.beside is None
    assert word in found.why and found.why in row["Note"]
    assert row["Measured / published"] == "–"


def test_no_study_of_ours_types_what_it_measured() -> None:
    from transect.domain.paths import ROOT
    from transect.domain.strict_yaml import load_yaml

    for path in sorted((ROOT / "config/studies").glob("*.yaml")):
        for given in load_yaml(path).get("published", []):
            assert isinstance(given.get("measured"), dict | None), f"{path.name}: {given}"


def test_who_is_fastest_and_who_is_there_first_stand_side_by_side() -> None:
    def cells(strategy: str, rate: float, seconds: float | None) -> list[Record]:
        reached = {} if seconds is None else {"time_to_quality": seconds, "steps_to_quality": 9.0}
        return [train(1, rate, n, strategy=strategy, metrics=reached) for n in range(3)]

    records = [*cells("single", 100, 5), *cells("mpi-allreduce", 300, 7), *cells("ddp-gloo", 900, None)]
    found = both_table("w", group_records(records))
    assert isinstance(found, Table)
    told = [
        (row["Cell"].split(" · ")[1], row["By time to quality"], row["By samples/s"], row[""]) for row in rows(found)
    ]
    assert told == [
        ("single", "1", "3", "gains 1 place"),
        ("mpi-allreduce", "2", "2", "loses 1 place"),
        ("ddp-gloo", "–", "1", "fast, and not there"),
    ]
    assert both_table("w", group_records(cells("single", 100, 5))) is None


def test_what_bounds_are_made_of_stands_first(report_page: Page) -> None:
    section = report_page.section("hardware")
    first, second, *_ = section.tables
    assert "bounds" in first and "Best valid" in second
    bounds = {row[0] for row in section.tables[first]}
    assert {"Peak arithmetic, fp32", "Memory bandwidth"} <= bounds
    assert any(one.get_text().endswith(("more chart", "more charts")) for one in section.soup("summary"))


def test_the_page_holds_what_was_published_as_text(report_page: Page) -> None:
    section = report_page.section("published")
    assert "1 of 1" in section.text and "other <machine>" in section.text
