"""What the page says first: answers, decisions, the order of findings, the command that runs cells again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from factories import make_record, train_cell
from transect.analysis.contrasts import Contrast, contrast
from transect.analysis.groups import Floors, group_records
from transect.analysis.load import Loaded, Problem
from transect.domain.cell import Cell
from transect.domain.record import Cause, Status
from transect.domain.study import Question
from transect.report.engine.answers import answer
from transect.report.engine.banner import banner
from transect.report.engine.build import build_report
from transect.report.engine.context import Context
from transect.report.engine.deciding import tally_of
from transect.report.engine.decision import Decision
from transect.report.engine.decisions import decision_table
from transect.report.engine.finding import Finding
from transect.report.engine.page import Cells
from transect.report.engine.parts import DecisionColumn, all_parts
from transect.report.engine.ranking import Turn, ranked, turn_of
from transect.report.engine.rules import unknown_names
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Chance


def cell_of(workload: str, repeat: int) -> Cell:
    return train_cell("torch", repeat, workload=workload)


def beside(factor: float) -> Contrast:
    """Compare six runs with six that take so many times as long."""
    base = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]
    cells = [train_cell(name, workload="w") for name in ("numpy", "torch")]
    groups = group_records(
        make_record(cell.changed(repeat=n), {"step_time": time * (factor if cell is cells[1] else 1)})
        for cell in cells
        for n, time in enumerate(base)
    )
    made = contrast(groups[1], groups[0], Floors(groups), "step_time", varies="framework", asked=True)
    assert made is not None
    return made


def found(rule: str, confidence: Confidence = Confidence.CONFIRMED, **more: Any) -> Finding:
    given = {"subject": "iris", "claim": f"what {rule} says.", "evidence": "e", "kind": "k"}
    return Finding(**given | more, rule=rule, confidence=confidence)


# --- in which order findings are read


def test_findings_are_read_by_what_they_change() -> None:
    order = [
        found("wrong", alarm=True, subject="equality"),
        found("large", contrasts=(beside(7.0),)),
        found("small", contrasts=(beside(1.5),)),
        found("provisional", Confidence.PROVISIONAL, contrasts=(beside(9.0),)),
        found("fact", subject="export"),
        found("seen-once", Confidence.PROVISIONAL),
        found("about", subject="study"),
        found("inconclusive", Confidence.INCONCLUSIVE, contrasts=(beside(20.0),)),
    ]
    assert ranked(order[::-1]) == order
    assert [turn_of(finding) for finding in order] == sorted(turn_of(finding) for finding in order)
    assert {turn_of(finding) for finding in order} == set(Turn)
    nobody = found("none-wins", decision=Decision(column="train", instead="nobody reached it"))
    assert turn_of(nobody) is Turn.FACT, "it decides nothing"


# --- answers


def runs(there: int, wanted: int) -> Any:
    return lambda rule: (there, wanted)


def test_a_question_is_answered_by_the_rules_that_it_names_a_line_each_with_its_own_confidence() -> None:
    findings = [
        found("b", claim="beta."),
        found("a.one", Confidence.PROVISIONAL, claim="alpha."),
        found("a.two", claim="other."),
    ]
    answered = answer(Question(ask="Why?", answered_by=["a.one", "b"]), findings, runs(3, 3))
    assert [clause.finding.rule for clause in answered.clauses] == ["a.one", "b"]
    assert [(clause.about, clause.text) for clause in answered.clauses] == [("iris", "alpha"), ("iris", "beta")]
    assert answered.confidence is Confidence.PROVISIONAL
    assert answered.text == "iris: alpha (likely). iris: beta (sure)."
    every = answer(Question(ask="?", answered_by=["a.*"]), findings, runs(3, 3))
    assert [clause.finding.rule for clause in every.clauses] == ["a.one", "a.two"]


def test_lines_beyond_the_fourth_fold_and_every_subject_comes_before_any_comes_twice() -> None:
    findings = [found("a", subject=subject, claim=f"{n}.") for subject in ("x", "y", "z") for n in range(2)]
    answered = answer(Question(ask="?", answered_by=["a"]), findings, runs(3, 3))
    assert [clause.about for clause in answered.first] == ["x", "x", "y", "z"]
    assert [(clause.about, clause.text) for clause in answered.more] == [("y", "1"), ("z", "1")]


@pytest.mark.parametrize(
    ("there", "wanted", "said"),
    [
        (0, 0, "Not measured: this study has no such runs."),
        (12, 40, "Not measured yet (12 of 40 runs there)."),
        (40, 40, "Not known: 40 runs there, and none of them tells."),
    ],
)
def test_a_question_without_an_answer_says_what_is_there_and_names_no_rule(there: int, wanted: int, said: str) -> None:
    answered = answer(Question(ask="?", answered_by=["export", "serving.*"]), [found("a")], runs(there, wanted))
    assert (answered.clauses, answered.text) == ((), said)


def test_a_question_without_rules_points_to_its_sections() -> None:
    shown = answer(Question(ask="?", shown_in=["export"]), [found("a")], runs(0, 0))
    assert shown.beside == ("export",) and (shown.instead, shown.text) == ("", "See export.")
    assert "does not say" in answer(Question(ask="Is it good?"), [found("a")], runs(0, 0)).text


def test_a_rule_that_does_not_exist_is_told_with_its_like() -> None:
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


# --- the banner


def banner_of(*records: Any) -> dict[str, Any]:
    context = Context(Loaded(study="s", records=list(records)), title="t")
    return {line.word: line for line in banner(context, tally_of((), context))}


def run(repeat: int, *, disturbed: bool | None = False, minutes: tuple[int, int] = (0, 1), **more: Any) -> Any:
    details = {} if disturbed is None else {"disturbed": disturbed}
    made = make_record(cell_of("w", repeat), {"step_time": 1.0}, details=details, **more)
    started, ended = (f"2026-11-26T10:{minute:02}:00+00:00" for minute in minutes)
    return made.model_copy(update={"started": started, "ended": ended})


def test_the_banner_counts_quiet_runs_of_those_that_ran_and_were_watched() -> None:
    skipped = run(9, disturbed=True, status=Status.SKIPPED, cause=Cause.MISSING_DEPENDENCY, message="no julia\nhere")
    never = banner_of(run(0, disturbed=True), run(1, disturbed=True), run(2, disturbed=None), skipped)
    assert "never quiet" in never["Quiet"].text and never["Quiet"].chip.tone == "bad"
    some = banner_of(*(run(n, disturbed=n < 2) for n in range(6)), skipped)
    assert some["Quiet"].text.startswith("4 of 6 runs") and some["Quiet"].chip.text == "67 % quiet"
    assert some["Cells"].text == "6 measurements · 1 skipped: no julia"
    assert "Quiet" not in banner_of(run(0, disturbed=None))


def test_the_banner_counts_no_pause_and_no_minute_twice() -> None:
    runs = (
        run(0, minutes=(0, 3)),
        run(1, minutes=(1, 2)),
        run(2, minutes=(2, 5)),
        run(3, minutes=(50, 52)),
        run(4, minutes=(53, 54)),
    )
    lines = banner_of(*runs)
    assert lines["Ran"].text == "26 November 2026 · 9 minutes", "a minute between two cells is no pause"
    assert banner_of()["Cells"].text == "0 measurements"


def test_a_record_that_cannot_be_read_is_still_to_come() -> None:
    unreadable = [Problem(where="train/iris.torch~1", what="cut")]
    made = Context(Loaded(study="s", records=[run(0)], unreadable=unreadable, problems=unreadable), title="t")
    assert made.pending == [("train", "iris.torch~1")]
    [cells] = [line for line in banner(made, tally_of((), made)) if line.word == "Cells"]
    assert cells.text == "1 measurement · 1 cannot be read" and cells.chip is not None and cells.chip.tone == "bad"


def test_the_banner_says_what_was_counted_as_a_comparison() -> None:
    said = found(
        "r", contrasts=(beside(2.0), beside(1.0)), tests=(Chance(p=0.001, rival=True), Chance(p=1, claimed=False))
    )
    made = Context(Loaded(study="s"), title="t")
    [line] = [line for line in banner(made, tally_of([said], made)) if line.word == "Compared"]
    assert line.text.startswith("3 of 4 comparisons decided") and line.chip is not None
    assert "2 planned pairs, 1 rival of a winner" in line.text and "1 test of another kind" in line.text
    assert line.chip.text == "1 not known"


# --- the decision table


@pytest.mark.parametrize(("name", "first"), [("step_time", "numpy"), ("samples_per_second", "torch")])
def test_bars_show_medians_best_first_by_the_longest_that_is_drawn(name: str, first: str) -> None:
    values = {"numpy": 1.0, "torch": 4.0, "keras": 2.0}
    records = [make_record(train_cell(f, n, workload="w"), {name: v}) for f, v in values.items() for n in range(3)]
    context = Context(Loaded(study="s", records=records), title="t")
    column = DecisionColumn(key="train", title="Train", order=1, stage="train", metric=name)
    decision = Decision(column="train", winner="x")
    groups = tuple(sorted(context.of("train"), key=lambda group: group.cell.framework != first))
    table = decision_table(context, [column], [found("r", subject="w", decision=decision, groups=groups)])
    [made] = table.rows[0].entries[0].decided
    shares = [bar.share for bar in made.bars]
    assert shares == ([0.25, 0.5, 1.0] if name == "step_time" else [1.0, 0.5, 0.25]) and made.more == 0
    alone = decision_table(context, [column], [found("r", subject="w", decision=decision, groups=groups[:1])])
    assert alone.rows[0].entries[0].decided[0].bars == (), "one bar compares nothing"
