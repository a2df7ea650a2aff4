"""What the page says first: answers, decisions, the order of findings, the command that runs cells again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from factories import make_record, train_cell
from transect.analysis.groups import Floors, group_records
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.domain.study import Question
from transect.report.engine.answers import answer, shortened
from transect.report.engine.build import build_report
from transect.report.engine.decision import Decision
from transect.report.engine.finding import Finding
from transect.report.engine.page import Cells
from transect.report.engine.parts import all_parts
from transect.report.engine.ranking import MAX_OPENED, Turn, opened, ranked, turn_of
from transect.report.engine.rules import unknown_names
from transect.stats.comparisons import Comparison, Confidence, compare


def cell_of(workload: str, repeat: int) -> Cell:
    return train_cell("torch", repeat, workload=workload)


def comparison(factor: float, floor: bool = True) -> Comparison:
    """Compare six runs with six that take so many times as long."""
    base = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]
    groups = group_records([make_record(cell_of("w", n), {"step_time": time}) for n, time in enumerate(base)])
    noise = Floors(groups).get("train", "w", "step_time") if floor else None
    found = compare(base, [factor * time for time in base], direction=Direction.LOWER, floor=noise)
    assert found is not None
    return found


def found(rule: str, confidence: Confidence = Confidence.CONFIRMED, **more: Any) -> Finding:
    given = {"subject": "iris", "claim": f"what {rule} says.", "evidence": "e", "kind": "k"}
    return Finding(**given | more, rule=rule, confidence=confidence)


# --- in which order findings are read


def test_findings_are_read_by_what_they_change() -> None:
    order = [
        found("wrong", alarm=True, subject="equality"),
        found("large", comparisons=(comparison(7.0),)),
        found("small", comparisons=(comparison(1.5),)),
        found("provisional", Confidence.PROVISIONAL, comparisons=(comparison(9.0),)),
        found("fact", subject="export"),
        found("seen-once", Confidence.PROVISIONAL),
        found("about", subject="study"),
        found("inconclusive", Confidence.INCONCLUSIVE, comparisons=(comparison(20.0),)),
    ]
    assert ranked(order[::-1]) == order
    assert [turn_of(finding) for finding in order] == sorted(turn_of(finding) for finding in order)
    assert {turn_of(finding) for finding in order} == set(Turn)
    nobody = found("none-wins", decision=Decision(column="train", instead="nobody reached it"))
    assert turn_of(nobody) is Turn.FACT, "it decides nothing"


def test_at_most_seven_stand_open_and_two_of_a_rule_as_long_as_others_wait() -> None:
    many = [found("a", comparisons=(comparison(9.0 - n / 10),)) for n in range(9)]
    others = [found(rule, subject="export") for rule in "bcdef"]
    first, others_shown = opened([*others, *many])
    assert [finding.rule for finding in first] == ["a", "a", "b", "c", "d", "e", "f"]
    assert [finding.rule for finding in others_shown] == ["a"] * 7
    first, others_shown = opened(many)
    assert (len(first), len(others_shown)) == (MAX_OPENED, 2) and [*first, *others_shown] == many
    wrong = [found("w", alarm=True) for _ in range(9)]
    assert opened([*many, *wrong])[0] == wrong[:7]
    assert opened([]) == ([], [])


# --- answers


def test_a_question_is_answered_by_the_rules_that_it_names_in_its_order() -> None:
    findings = [
        found("b", claim="beta."),
        found("a.one", Confidence.PROVISIONAL, claim="alpha."),
        found("a.two", claim="other."),
    ]
    answered = answer(Question(ask="Why?", answered_by=["a.one", "b"]), findings)
    assert [finding.rule for _, finding in answered.clauses] == ["a.one", "b"]
    assert answered.confidence == "provisional" and answered.left_out == 0
    assert [text for text, _ in answered.clauses] == ["iris: alpha", "iris: beta"]
    assert answered.mixed and "alpha (provisional)" in answered.text and "beta (confirmed)" in answered.text
    assert answer(Question(ask="?", answered_by=["b"]), findings).text == "iris: beta."
    every = answer(Question(ask="?", answered_by=["a.*"]), findings)
    assert [finding.rule for _, finding in every.clauses] == ["a.one", "a.two"]


def test_a_question_without_rules_points_to_what_was_found() -> None:
    findings = [found("a", section="speed"), found("b", section="speed")]
    answered = answer(Question(ask="Is it good?"), findings)
    assert answered.confidence == "inconclusive" and answered.beside == (("speed", 2),)
    assert "names no rule" in answered.text and "'speed'" in answered.text
    shown = answer(Question(ask="?", shown_in=["export"]), findings)
    assert shown.beside == (("export", 0),) and shown.text != answered.text


def test_a_rule_that_says_nothing_here_and_one_that_does_not_exist_differ() -> None:
    unknown = answer(Question(ask="?", answered_by=["export"]), [found("a")])
    assert unknown.clauses == () and "export" in unknown.text
    asked = [
        Question(ask="A", answered_by=["export", "exports.fine", "serv*", "serving", "doubt.heads", "knob.knobs"]),
        Question(ask="B", shown_in=["speed", "spede", "failures", "knobs"]),
    ]
    unknown = unknown_names(asked, all_parts())
    named = ["exports.fine", "serving", "knob.knobs", "spede", "knobs"]
    assert [(ask, what.split("'")[1]) for ask, what in unknown] == list(zip("AAABB", named, strict=True))
    assert "'serving.runtime'" in unknown[1][1] and "'speed'" in unknown[3][1]
    assert unknown[2][1] == "rule 'knob.knobs' is called 'hyperparameter' now" and "'classifier-hyper" in unknown[4][1]


def test_a_rule_that_nothing_makes_is_a_problem_of_the_report(tmp_path: Path) -> None:
    asked = [Question(ask="<b>Who?</b>", answered_by=["trianing.fastest"])]
    (tmp_path / "s").mkdir()
    summary = build_report(tmp_path / "s", tmp_path / "r.html", title="t", questions=asked)
    [problem] = summary["problems"]
    assert "'trianing.fastest'" in problem and "training" in problem
    assert "<b>Who" not in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("as short as may be", "as short as may be"),
        (f"it wins; {'x' * 200}", "it wins …"),
        (f"{'y' * 60}; it is so, by 1,500 of them; {'x' * 200}", f"{'y' * 60}; it is so, by 1,500 of them …"),
        ("z" * 300, f"{'z' * 190} …"),
    ],
)
def test_long_claims_end_where_a_part_of_them_ends(text: str, short: str) -> None:
    assert shortened(text) == short


# --- cells and the command that runs them again


def test_a_finding_names_its_cells_as_the_command_takes_them() -> None:
    names = [(name, n) for name in ("iris-mlp", "iris-mlp-ce") for n in range(2)]
    records = [make_record(cell_of(*axes), {"step_time": 1.0}) for axes in names]
    cells = Cells(records, ["my study.yaml", "--system", "hpc"])
    all_of_one = found("a", subject="iris-mlp", stages=("train", "bench"))
    assert cells.of(all_of_one) == ["train/iris-mlp.*"]
    assert cells.of(found("a", subject="study", stages=("train",))) == ["train"]
    assert cells.of(found("a", subject="iris-mlp", stages=("bench",))) == []
    [group] = [group for group in group_records(records) if group.cell.workload == "iris-mlp-ce"]
    named = cells.of(found("a", groups=(group, group)))
    assert named == sorted(f"train/{record.cell_id}" for record in group.records)
    words = shlex.split(cells.command(named))
    assert words == ["transect", "run", "my study.yaml", "--system", "hpc", *named, "--force"]
    assert cells.command([]) == ""
