"""Comparisons of result sets: which runs enter."""

from __future__ import annotations

import pytest

from factories import train_cell
from result_runs import noisy, run_record
from transect.analysis.load import Loaded
from transect.analysis.result_sets import ResultSet
from transect.analysis.set_lines import Outcome
from transect.analysis.set_verdicts import compare_sets
from transect.domain.record import Record


def results(letter: str, seed: int, slow: float = 1.0, at: tuple[int, ...] = (4,), all_by: float = 1.0) -> ResultSet:
    """A set of four frameworks, slower by `all_by`; in the repeats `at` others were at work, and these take `slow` times as long."""
    records: list[Record] = []
    for place, framework in enumerate(("numpy", "torch", "keras", "jax")):
        for repeat, seconds in enumerate(noisy(1.0, seed + place)):
            loud = repeat in at
            values = {"time_to_quality": seconds * all_by * (slow if loud else 1.0), "accuracy": 0.9}
            values["step_time"] = values["time_to_quality"] / 100
            cell = train_cell(framework, repeat)
            records.append(
                run_record(cell, values, details={"global_batch": 16, "disturbed": loud}, commit=letter * 40)
            )
    return ResultSet(letter=letter, name=letter, loaded=Loaded(study="s", records=records))


@pytest.mark.parametrize("name", ["time_to_quality", "step_time"])
def test_a_disturbed_run_enters_no_comparison_of_times(name: str) -> None:
    [plain], [loud] = (
        compare_sets(results("a", 0), [results("b", 9, slow)], metrics=[name], margin=0.1) for slow in (1.0, 20.0)
    )
    assert [line.outcome for line in loud.lines] == [Outcome.SAME] * 4
    assert [line.ratio for line in loud.lines] == [line.ratio for line in plain.lines]
    assert [shift.decision.ratio for shift in loud.shifts] == [shift.decision.ratio for shift in plain.shifts]


def test_quiet_runs_decide_alone_only_where_enough_are_quiet_on_both_sides() -> None:
    base, other = results("a", 0, at=(3, 4)), results("b", 9, at=(0, 1), all_by=1.1)
    [compared] = compare_sets(base, [other], metrics=["time_to_quality"], margin=0.05)
    assert [line.outcome for line in compared.lines] == [Outcome.WORSE] * 4
    # One quiet repeat in common would be "too few runs".
    assert all("of 5 seeds" in line.reason for line in compared.lines), [line.reason for line in compared.lines]
