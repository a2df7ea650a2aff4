"""A block goes on with the pairs whose interval is too wide, both sides together, and stops each for a reason."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cell_jobs import make_job
from factories import bare_record, infer_cell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.pairs import Pair
from transect.domain.record import write_record
from transect.engine.job import Job
from transect.engine.repetition import TIME, Repetition, deadline_of

UNTIL = {
    "metric": "latency",
    "ci_half_width": None,
    "equivalence_margin": 0.05,
    "margin": 0.05,
    "min_repeats": 3,
    "max_repeats": 8,
    "budget_s": None,
}


@dataclass
class Bench:
    """Runs cells of made-up latencies: `times` by runtime, with a noise of `spread`; `a` is the base of each pair."""

    folder: Path
    times: dict[str, float]
    spread: dict[str, float] = field(default_factory=dict)
    ran: list[tuple[str, int]] = field(default_factory=list)
    heats: list[str] = field(default_factory=list)
    seconds: float = 1.0
    waited: float = 0.0

    def jobs(self, **changes: Any) -> list[Job]:
        until = UNTIL | changes
        pairs = [self.pair(runtime) for runtime in self.times if runtime != "a"]
        cells = [self.cell(runtime, repeat) for repeat in range(until["max_repeats"]) for runtime in self.times]
        return [self._job(cell, until, pairs) for cell in cells]

    def cell(self, runtime: str, repeat: int = 0) -> Cell:
        return infer_cell(runtime, repeat, exporter="dynamo")

    def pair(self, runtime: str) -> Pair:
        sides = [self.cell(name).without_repeat().id for name in (runtime, "a")]
        return Pair(
            stage="infer",
            cell=sides[0],
            base=sides[1],
            metric="latency",
            varies=("runtime",),
            rules=("serving.runtime",),
        )

    def _job(self, cell: Cell, until: dict[str, Any], pairs: Sequence[Pair]) -> Job:
        optional = {"optional": True} if cell.repeat >= until["min_repeats"] else {}
        mine = [pair.stored() for pair in pairs if cell.without_repeat().id in (pair.cell, pair.base)]
        return make_job(self.folder, cell, repeat_until=until, pairs=mine, **optional)

    def run_some(self, jobs: Sequence[Job]) -> None:
        self.heats.append("".join(str(job.cell.get("runtime")) for job in jobs))
        for job in jobs:
            self.run_one(job)

    def run_one(self, job: Job) -> None:
        cell = job.cell
        runtime = str(cell.get("runtime"))
        # Every way that two cells' repeats can be off together: nothing is shared.
        off = ((1, -1, 0, 1, -1, -1, 1, 0), (-1, 0, 1, 1, -1, 1, -1, 0))[runtime > "b"][cell.repeat]
        latency = self.times[runtime] * math.exp(self.spread.get(runtime, 0.004) * off)
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        end = begin + timedelta(seconds=self.seconds + self.waited)
        record = bare_record(
            cell,
            {"latency": latency},
            started=begin.isoformat(),
            ended=end.isoformat(),
            details={"disturbed": False, "waited_s": self.waited},
        )
        write_record(job.folder / "record.json", record)
        self.ran.append((runtime, cell.repeat))

    def floor(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if not job.spec.get("optional"):
                self.run_one(job)
        self.ran.clear()


def stop_reasons(repetition: Repetition) -> dict[str, str]:
    return {name.split(".")[2]: why for name, why in repetition.stop_reasons.items()}


def kinds(repetition: Repetition) -> dict[str, str]:
    return {name: why.partition(":")[0] for name, why in stop_reasons(repetition).items()}


def run(bench: Bench, **changes: Any) -> Repetition:
    jobs = bench.jobs(**changes)
    if not [*bench.folder.glob("s/*/*/record.json")]:
        bench.floor(jobs)
    repetition = Repetition(jobs)
    repetition.run(bench.run_some)
    return repetition


LOUD = {"a": 0.04, "c": 0.04}


def test_pairs_that_are_known_well_enough_need_no_repeat_whatever_their_ratio(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "b": 1.5, "c": 1.001})
    repetition = run(bench)
    assert bench.ran == []
    assert stop_reasons(repetition) == dict.fromkeys("abc", "interval")
    assert len(repetition.skipped_optional()) == 3 * 5


@pytest.mark.parametrize(("ratio", "more"), [(1.0, (3, 4)), (1.04, (3, 4)), (2.0, (3, 4)), (1e9, ())])
def test_how_long_it_goes_on_depends_on_the_difference_only_where_that_is_beyond_doubt(
    tmp_path: Path, ratio: float, more: tuple[int, ...]
) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": ratio}, {"a": 0.012, "c": 0.012})
    run(bench)
    assert bench.ran == [(runtime, repeat) for repeat in more for runtime in "ac"]


def test_both_sides_of_an_open_pair_get_the_same_repeat_together_and_the_others_stop(tmp_path: Path) -> None:
    widths = {"b": 0.001, "c": 0.2}
    bench = Bench(tmp_path, {"a": 1.0, "b": 1.9, "c": 1.03, "d": 1.91})

    def half_widths(pairs: Sequence[Pair], records: Sequence[Any]) -> dict[Pair, tuple[float, int]]:
        of = {bench.pair(name): name for name in "bcd"}
        return {pair: (widths.get(of[pair], 0.001), 3) for pair in pairs}

    jobs = bench.jobs()
    bench.floor(jobs)
    repetition = Repetition(jobs, half_widths=half_widths)
    repetition.run(bench.run_some)
    assert bench.heats == ["ac"] * 5 and bench.ran[:4] == [("a", 3), ("c", 3), ("a", 4), ("c", 4)]
    assert kinds(repetition) == {"a": "max_repeats", "b": "interval", "c": "max_repeats", "d": "interval"}


def test_an_open_pair_says_by_how_much_it_missed_and_what_would_decide(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.0}, seconds=3.0, waited=2.0)
    jobs = bench.jobs(max_repeats=3)
    for job in jobs:
        bench.run_one(job)
    asked = math.log1p(0.05) / 2
    repetition = Repetition(jobs, half_widths=lambda pairs, _: dict.fromkeys(pairs, (2 * asked, 3)))
    repetition.run(bench.run_some)
    why = stop_reasons(repetition)["c"]
    assert "known within 5 %, 2.5 % would decide: about 9 more repeats, 0.9 minutes" in why
    # Waiting for the others is in no cell's time: 9 repeats of two cells of 3 s.


def test_a_narrow_interval_of_its_own_is_enough_where_the_study_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, LOUD)
    wide = run(bench, equivalence_margin=None, ci_half_width=0.5)
    assert bench.ran == [] and kinds(wide) == {"a": "interval", "c": "interval"}
    narrow = run(bench, equivalence_margin=None, ci_half_width=0.0001)
    assert len(bench.ran) == 10 and kinds(narrow) == {"a": "max_repeats", "c": "max_repeats"}


def test_a_cell_without_a_pair_goes_on_for_its_own_interval_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0}, LOUD)
    assert kinds(run(bench)) == {"a": "nothing to compare"} and bench.ran == []
    again = run(bench, ci_half_width=0.0001)
    assert bench.heats == ["a"] * 5 and kinds(again) == {"a": "max_repeats"}


# Two cells, of which each takes a second, apart from what it waits for the other.
@pytest.mark.parametrize(("budget", "most"), [(0.0, 0), (1.5, 2), (3.5, 4), (9.5, 10), (100.0, 10)])
def test_no_repeat_begins_after_the_end_of_the_blocks_budget(tmp_path: Path, budget: float, most: int) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, LOUD, waited=5.0)
    repetition = run(bench, budget_s=budget)
    assert len(bench.ran) == most
    assert set(kinds(repetition).values()) == {"max_repeats" if budget > 10 else "budget"}
    # What was spent stands in the records: a second call has no new budget.
    again = run(bench, budget_s=budget)
    assert len(bench.ran) == most and stop_reasons(again) == stop_reasons(repetition)


def test_a_job_whose_time_is_up_begins_nothing_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, LOUD)
    jobs = bench.jobs()
    bench.floor(jobs)
    repetition = Repetition(jobs, deadline=time.monotonic() - 1)
    repetition.run(bench.run_some)
    assert bench.ran == [] and set(kinds(repetition).values()) == {TIME}
    assert deadline_of({"minutes": None}, jobs) is None
    assert (deadline_of({"minutes": 0}, jobs) or math.inf) < time.monotonic()


def test_what_all_of_a_heat_need_runs_once_for_each_repeat(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, LOUD)
    jobs = bench.jobs()
    shared = {n: make_job(tmp_path, infer_cell("b", n, exporter="dynamo"), optional=True) for n in range(3, 8)}
    for job in jobs:
        if (need := shared.get(job.cell.repeat)) is not None:
            job.spec["inputs"]["reference"] = [need.cell.stage, need.cell.id]
    bench.floor(jobs)
    bench.times["b"] = 1.0
    Repetition([*shared.values(), *jobs]).run(bench.run_some)
    assert bench.heats[:4] == ["b", "ac", "b", "ac"]
    assert [ran for ran in bench.ran if ran[0] == "b"] == [("b", n) for n in range(3, 8)]


def test_what_was_killed_goes_on_from_its_records_with_the_side_that_is_missing(tmp_path: Path) -> None:
    whole = Bench(tmp_path / "whole", {"a": 1.0, "c": 1.03}, LOUD)
    run(whole)
    cut = Bench(tmp_path / "cut", whole.times, whole.spread)
    jobs = cut.jobs()
    cut.floor(jobs)

    def killed(after: int) -> Callable[[Sequence[Job]], None]:
        def run_or_die(heat: Sequence[Job]) -> None:
            for job in heat:
                if len(cut.ran) == after:
                    raise KeyboardInterrupt
                cut.run_one(job)

        return run_or_die

    with pytest.raises(KeyboardInterrupt):
        Repetition(jobs).run(killed(3))
    again = Repetition(cut.jobs())
    again.run(cut.run_some)
    assert cut.heats[0] == "c" and cut.ran == whole.ran and set(kinds(again).values()) == {"max_repeats"}
    # And a call when all is done runs nothing.
    Repetition(cut.jobs()).run(cut.run_some)
    assert cut.ran == whole.ran


def test_a_stricter_repeat_until_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.012}, {"a": 0.006, "c": 0.006})
    first = run(bench, equivalence_margin=0.10)
    assert bench.ran == [] and stop_reasons(first) == {"a": "interval", "c": "interval"}
    before = first.skipped_optional()
    assert set(before.values()) != set(Repetition(bench.jobs(equivalence_margin=0.01)).skipped_optional().values())
    run(bench, equivalence_margin=0.01)
    assert bench.ran[:2] == [("a", 3), ("c", 3)]


def test_one_without_a_result_is_not_measured_on(tmp_path: Path) -> None:
    empty = Bench(tmp_path / "none", {"a": 1.0, "b": 1.0})
    jobs = empty.jobs()
    empty.floor(jobs[:1] + jobs[2:3])
    repetition = Repetition(jobs)
    repetition.run(empty.run_some)
    assert empty.ran == [] and stop_reasons(repetition) == {"a": "nothing to compare", "b": "nothing to compare"}


def test_a_pair_of_which_one_side_runs_in_another_job_is_left_to_the_report(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, LOUD)
    jobs = [job for job in bench.jobs() if job.cell.get("runtime") == "c"]
    bench.floor(jobs)
    repetition = Repetition(jobs)
    repetition.run(bench.run_some)
    assert bench.ran == [] and stop_reasons(repetition) == {"c": "nothing to compare"}


def test_a_cell_that_leaves_no_record_does_not_run_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, LOUD)
    jobs = bench.jobs()
    bench.floor(jobs)
    ran: list[int] = []
    with pytest.raises(BadInput, match=r"record\.json: gone"):
        Repetition(jobs).run(lambda heat: ran.append(len(heat)))
    assert ran == [2]
