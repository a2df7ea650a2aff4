"""What a sceptical reader asks of the page's front: is a winner named where nothing shows one, is anything missing?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contested_records import Made, elsewhere, lacking, targets, unequal, ways
from pages import Page

from transect.analysis.comparisons import Confidence, compare
from transect.analysis.groups import group_records
from transect.report.build import write_page
from transect.report.findings.finding import Race
from transect.report.made import Made as Report

Table = dict[tuple[str, str], dict[str, Any]]
SETS = {"ways": ways, "lacking": lacking, "unequal": unequal, "targets": targets, "elsewhere": elsewhere}


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return {name: make().report() for name, make in SETS.items()}


@pytest.fixture(scope="module")
def tables(reports: dict[str, Report]) -> dict[str, Table]:
    """Entries of each set's decision table by workload and column: the first thing told, or why not."""
    return {
        name: {
            (one["workload"], one["question"]): one["decided"][0] if one["decided"] else one
            for one in report.summary["decisions"]
        }
        for name, report in reports.items()
    }


def test_prose(tables: dict[str, Table], snapshot: Any) -> None:
    kept = (
        "winner",
        "confidence",
        "second",
        "tied",
        "instead",
        "gain",
        "value",
        "quality",
        "limit",
        "left_out",
        "why_not",
    )
    assert {
        name: {" ".join(place): {key: entry[key] for key in kept if entry.get(key)} for place, entry in table.items()}
        for name, table in tables.items()
    } == snapshot


def test_no_workload_is_missing_and_nothing_that_was_asked_is_called_not_asked(reports: dict[str, Report]) -> None:
    assert reports["lacking"].front.table.absent == ()


def test_cells_to_come_are_said_under_the_table(tmp_path: Path) -> None:
    made = Made()
    made.train("iris", repeats=1)
    keys = [(record.stage, record.cell_id) for record in made.records]
    report = made.report(planned=[*keys, ("train", "late.torch~00000000")])
    assert report.summary["pending"] == {"running": 0, "waiting": 1}
    write_page(report, tmp_path / "report.html")
    assert "still to come" in Page.read(tmp_path / "report.html").section("decisions").text


def test_nobody_wins_by_a_median_that_the_comparison_turns_over() -> None:
    made = Made()
    made.train("iris", repeats=3)
    [group] = group_records(made.records)
    worse = compare([1.2, 1.2, 1.2], [1.0, 1.0, 1.0])
    better = compare([1.0, 1.0, 1.0], [1.2, 1.2, 1.2])
    assert worse is not None and better is not None

    def confidence(one: Any) -> Confidence:
        return Race(best=group, values=(1.0,), tied=(), runner_up=None, comparison=one, comparisons=(one,)).confidence

    assert confidence(worse) is Confidence.INCONCLUSIVE and confidence(better) is not Confidence.INCONCLUSIVE
