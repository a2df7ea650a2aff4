"""What a sceptical reader asks of the page's front: is a winner named where nothing shows one, is anything missing?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contested_records import Made, elsewhere, lacking, targets, unequal, ways
from pages import Page

from transect.analysis.comparisons import Confidence, compare
from transect.analysis.groups import group_records
from transect.domain.record import Cause
from transect.domain.study import Question
from transect.report.answers import answer
from transect.report.build import write_page
from transect.report.findings.finding import Finding, Race, lost_runs
from transect.report.made import Made as Report
from transect.report.rerun import Cells

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


def why(entry: dict[str, Any]) -> dict[str, str]:
    return {one["what"]: one["why"] for one in entry["left_out"]}


def test_prose(tables: dict[str, Table], snapshot: Any) -> None:
    kept = ("winner", "tied", "instead", "gain", "value", "quality", "limit", "left_out", "why_not")
    assert {
        name: {" ".join(place): {key: entry[key] for key in kept if entry.get(key)} for place, entry in table.items()}
        for name, table in tables.items()
    } == snapshot


def test_ways_on_as_many_ranks_are_compared_before_one_of_them_wins(tables: dict[str, Table]) -> None:
    tie, won, slow = (tables["ways"][name, "scale"] for name in ("tie", "won", "slow"))
    both = {"numpy · mpi-allreduce", "torch · ddp-gloo"}
    assert {tie["winner"], *tie["tied"]} == both
    assert won["winner"] == "torch · ddp-gloo" and not won["tied"]
    assert won["second"] == "numpy · mpi-allreduce" and "numpy · mpi" in won["gain"]
    assert "5.5" in won["value"] and "missed" in won["quality"]
    assert slow["winner"] == "" and "slower" in slow["instead"]


def test_no_workload_is_missing_and_nothing_that_was_asked_is_called_not_asked(
    tables: dict[str, Table], reports: dict[str, Report]
) -> None:
    table = tables["lacking"]
    for place, words in {
        ("broken", "scale"): "crash",
        ("shared", "scale"): "cores",
        ("none", "serve-many"): "failed: timeout",
        ("broken", "serve-one"): "not part",
    }.items():
        assert words in table[place]["why_not"], place
    assert "1 cell" in table["broken", "scale"]["why_not"]
    assert "synthetic" in table["random", "train"]["instead"]
    assert reports["lacking"].front.table.absent == ()


def test_who_lost_runs_or_ran_on_another_machine_is_no_sure_winner(tables: dict[str, Table]) -> None:
    table = tables["unequal"]
    for column in ("train", "serve-one", "serve-many"):
        lost, apart, fair = (table[name, column] for name in ("lost", "apart", "fair"))
        assert fair["confidence"] == "confirmed"
        assert lost["confidence"] == apart["confidence"] == "provisional"
        assert "2 of its 5" in lost["quality"] and "timeout" in lost["quality"]
        assert "of its 5" not in fair["quality"]


def test_a_race_is_to_one_target_and_of_one_training(tables: dict[str, Table]) -> None:
    table = tables["targets"]
    iris = table["iris", "train"]
    assert iris["winner"].startswith("torch") and "accuracy 0.99," in iris["quality"]
    assert why(iris) == {
        "keras · single · 1 rank": "another target",
        "numpy · single · 1 rank, fp64": "another training",
    }
    assert "below" in table["below", "train"]["quality"] and "below" not in iris["quality"]


def test_a_runtime_that_was_not_measured_where_the_best_was_is_named(
    tables: dict[str, Table], reports: dict[str, Report]
) -> None:
    table = tables["elsewhere"]
    many = table["iris", "serve-many"]
    assert many["winner"].startswith("python") and many["confidence"] == "provisional"
    assert list(why(many)) == ["cpp"] and "batch 64, 1 thread" in why(many)["cpp"]
    one = table["small", "serve-one"]
    assert set(why(one)) == {"cpp", "python"}
    assert all(reason.endswith("batch 1") for reason in why(one).values())
    alone = next(
        x for x in reports["elsewhere"].findings if (x.subject, x.kind) == ("small", "runtime") and "batch 1" in x.scope
    )
    assert not alone.comparisons and alone.decision is not None and not alone.decision.second
    assert "python" in table["alike", "serve-one"]["quality"]


def test_strange_workloads_run_again_by_their_own_ids_and_no_others() -> None:
    made = Made()
    for name in ("a b", "iris.big", "iris", "plain"):
        made.train(name, repeats=2)
    made.infer("other", "cpp", 1e-4, repeats=1)
    cells = Cells(made.records, ["s"])

    def of(subject: str) -> list[str]:
        finding = Finding(
            subject=subject,
            claim="c",
            evidence="e",
            confidence=Confidence.CONFIRMED,
            kind="k",
            stages=("train", "infer"),
        )
        return cells.of(finding)

    ids = {
        name: sorted(f"train/{r.cell_id}" for r in made.records if r.cell.workload == name) for name in ("a b", "iris")
    }
    assert of("a b") == ids["a b"] and of("iris") == ids["iris"]
    assert of("iris.big") == ["train/iris.big.*"] and of("plain") == ["train/plain.*"]
    assert of("study") == ["train", "infer"]


def test_a_rule_that_is_nearly_right_is_told_from_those_that_say_something() -> None:
    finding = Finding(
        subject="iris", claim="c.", evidence="e", confidence=Confidence.CONFIRMED, kind="k", rule="training.fastest"
    )
    told = answer(Question(ask="?", answered_by=["training.fastes"]), [finding])
    assert "training.fastest" in told.text


def test_cells_to_come_are_said_under_the_table(tmp_path: Path) -> None:
    made = Made()
    made.train("iris", repeats=1)
    keys = [(record.stage, record.cell_id) for record in made.records]
    report = made.report(planned=[*keys, ("train", "late.torch~00000000")])
    assert report.summary["pending"] == {"running": 0, "waiting": 1}
    write_page(report, tmp_path / "report.html")
    assert "still to come" in Page.read(tmp_path / "report.html").section("decisions").text


def test_lost_runs_are_said_of_those_that_kept_some() -> None:
    made = Made()
    made.train("iris", repeats=3)
    assert lost_runs(group_records(made.records)[0]) == ""
    made.train("iris", first=3, repeats=5, cause=Cause.CRASH)
    assert lost_runs(group_records(made.records)[0]).startswith("2 of its 5")


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
