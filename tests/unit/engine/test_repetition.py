"""A block goes on with the cells whose comparison is open, and stops each for a reason."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cell_jobs import make_job
from factories import bare_record, infer_cell
from transect.analysis.contests import contests, standings
from transect.analysis.groups import Floors, group_records
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.record import Record, write_record
from transect.domain.until import ComparisonRule
from transect.engine.job import Job
from transect.engine.repetition import TIME, Repetition, deadline_of
from transect.planning.stage import STAGES
from transect.stats.comparisons import Verdict

UNTIL = {
    "ci_half_width": None,
    "equivalence_margin": 0.05,
    "decide": True,
    "min_repeats": 3,
    "max_repeats": 8,
    "budget_s": None,
    "looks": 3,
    "ways": 0.0,
    "comparison": STAGES.get("infer").comparison.stored(),
}


@dataclass
class Bench:
    """Runs cells of made-up latencies: `times` by runtime, with a noise of `spread`."""

    folder: Path
    times: dict[str, float]
    spread: dict[str, float] = field(default_factory=dict)
    ran: list[tuple[str, int]] = field(default_factory=list)
    seconds: float = 1.0
    disturbed: str = ""

    def jobs(self, **changes: Any) -> list[Job]:
        until = UNTIL | changes
        cells = [
            infer_cell(runtime, repeat, exporter="dynamo")
            for repeat in range(until["max_repeats"])
            for runtime in self.times
        ]
        return [self._job(cell, until) for cell in cells]

    def _job(self, cell: Cell, until: dict[str, Any]) -> Job:
        optional = {"optional": True} if cell.repeat >= until["min_repeats"] else {}
        return make_job(self.folder, cell, repeat_until=until, **optional)

    def run_one(self, job: Job) -> None:
        cell = job.cell
        runtime = str(cell.get("runtime"))
        # Every way that two cells' repeats can be off together: nothing is shared.
        off = ((1, -1, 0, 1, -1, -1, 1, 0), (-1, 0, 1, 1, -1, 1, -1, 0))[runtime > "b"][cell.repeat]
        latency = self.times[runtime] * math.exp(self.spread.get(runtime, 0.004) * off)
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        end = begin + timedelta(seconds=self.seconds)
        record = bare_record(
            cell,
            {"latency": latency},
            started=begin.isoformat(),
            ended=end.isoformat(),
            details={"disturbed": runtime == self.disturbed and cell.repeat == 0},
        )
        write_record(job.folder / "record.json", record)
        self.ran.append((runtime, cell.repeat))

    def floor(self, jobs: list[Job]) -> None:
        for job in jobs:
            if not job.spec.get("optional"):
                self.run_one(job)
        self.ran.clear()


def stop_reasons(repetition: Repetition) -> dict[str, str]:
    return {name.split(".")[2]: why for name, why in repetition.stop_reasons.items()}


def run(bench: Bench, **changes: Any) -> Repetition:
    jobs = bench.jobs(**changes)
    if not [*bench.folder.glob("s/*/*/record.json")]:
        bench.floor(jobs)
    repetition = Repetition(jobs)
    repetition.run(bench.run_one)
    return repetition


def test_decided_cells_need_no_repeat_and_cost_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "b": 1.5, "c": 1.001})
    repetition = run(bench)
    assert bench.ran == []
    assert stop_reasons(repetition) == dict.fromkeys("abc", "decided")
    assert len(repetition.skipped_optional()) == 3 * 5 and len(set(repetition.skipped_optional().values())) == 1


def test_open_cells_go_on_in_rounds_and_the_others_stop(tmp_path: Path) -> None:
    # `b` and `d` are far off; `c` is too near to `a` and too loud for any verdict.
    bench = Bench(tmp_path, {"a": 1.0, "b": 1.9, "c": 1.03, "d": 1.91}, {"a": 0.04, "c": 0.04})
    repetition = run(bench)
    assert stop_reasons(repetition)["c"] == "max_repeats" and stop_reasons(repetition)["b"] == "decided"
    of_c = [repeat for runtime, repeat in bench.ran if runtime == "c"]
    assert of_c == [3, 4, 5, 6, 7]
    rounds = [repeat for _, repeat in bench.ran]
    assert rounds == sorted(rounds), "one round after another"
    assert {runtime for runtime, _ in bench.ran if runtime in "bd"} == set()


def test_a_narrow_interval_is_enough_where_the_study_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, {"a": 0.04, "c": 0.04})
    wide = run(bench, decide=False, ci_half_width=0.5)
    assert bench.ran == [] and stop_reasons(wide) == {"a": "interval", "c": "interval"}
    narrow = run(bench, decide=False, ci_half_width=0.0001)
    assert len(bench.ran) == 10 and stop_reasons(narrow) == {"a": "max_repeats", "c": "max_repeats"}


# Looks at 3, 5 and 8: two cells, of which each takes a second.
@pytest.mark.parametrize(("budget", "most"), [(0.0, 0), (3.5, 4), (4.5, 5), (9.5, 10), (100.0, 10)])
def test_no_repeat_begins_after_the_end_of_the_blocks_budget(tmp_path: Path, budget: float, most: int) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, {"a": 0.04, "c": 0.04})
    repetition = run(bench, budget_s=budget)
    assert len(bench.ran) == most
    assert set(stop_reasons(repetition).values()) == {"max_repeats" if most == 10 else "budget"}
    # What was spent stands in the records: a second call has no new budget.
    again = run(bench, budget_s=budget)
    assert len(bench.ran) == most and stop_reasons(again) == stop_reasons(repetition)


def test_the_best_of_each_runtime_race_and_the_others_are_not_measured_on() -> None:
    comparison = STAGES.get("infer").comparison
    assert comparison.best_of == ("runtime",) and ComparisonRule.of(comparison.stored()) == comparison

    def record(runtime: str, threads: int, batch: int, repeat: int) -> Record:
        cell = infer_cell(runtime, repeat, exporter="dynamo", batch=batch, threads=threads)
        time = {"a": 1.0, "b": 2.0}[runtime] * (1.5 if threads == 2 else 1.0) * (1 + batch / 10 + repeat / 1e3)
        return bare_record(cell, {"latency": time, "throughput": batch / time})

    groups = group_records(
        record(runtime, threads, batch, n)
        for runtime in "ab"
        for threads in (1, 2)
        for batch in (1, 8)
        for n in range(3)
    )
    found = contests(groups, comparison, Floors(groups))
    pairs = [tuple((g.cell.runtime, g.cell.threads, g.cell.batch) for g in pair[:2]) for pair in found]
    # First at each batch, and most at any.
    assert sorted(pairs) == [(("a", 1, 1), ("b", 1, 1)), (("a", 1, 8), ("b", 1, 8)), (("a", 1, 8), ("b", 1, 8))]
    stand = standings(groups, comparison, Floors(groups), interval=None, decide=True, looks=1)
    assert {c.threads for c, why in stand.items() if "nothing to compare" in why} == {2}


def test_a_cell_that_others_disturbed_goes_on_until_they_count_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "b": 1.5, "d": 1.9}, disturbed="b")
    repetition = run(bench)
    # One of five is left out of a middle, one of three is not.
    assert bench.ran == [("a", 3), ("b", 3), ("a", 4), ("b", 4)]
    assert stop_reasons(repetition) == dict.fromkeys("abd", "decided")


def test_retrainings_are_decided_by_their_step_and_by_their_quality_seed_by_seed() -> None:
    def record(runtime: str, rate: str, repeat: int) -> Record:
        cell = Cell.of(
            stage="retrain",
            workload="w",
            runtime=runtime,
            provider="cpu",
            threads=1,
            steps=10,
            batch=4,
            optimiser="sgd",
            rate=rate,
            repeat=repeat,
        )
        # A seed moves the quality of all; each runtime computes the same.
        quality = (0.5, 0.9, 0.7, 0.6)[repeat] * (1.2 if rate == "new" else 1.0)
        step = {"python": 1.0, "rust": 1.5}[runtime] * (1 + 0.001 * repeat)
        return bare_record(cell, {"step_time": step, "accuracy": quality})

    records = [record(runtime, rate, n) for runtime in ("python", "rust") for rate in ("old", "new") for n in range(4)]
    groups = group_records(records)
    comparison = STAGES.get("retrain").comparison
    assert ComparisonRule.of(comparison.stored()) == comparison
    made = contests(groups, comparison, Floors(groups))
    results = {(a.cell.runtime, a.cell.rate, b.cell.runtime, b.cell.rate): result for a, b, result in made}
    assert results.keys() == {
        ("python", "new", "rust", "new"),
        ("python", "old", "rust", "old"),
        ("python", "new", "python", "old"),
        ("rust", "new", "rust", "old"),
    }
    assert all(result.verdict is Verdict.BETTER for result in results.values())
    quality = results["python", "new", "python", "old"]
    # Not seed by seed the two would overlap.
    assert quality.a.low < quality.b.high and quality.decision is not None
    assert quality.decision.pairs == 4 and quality.decision.ratio == pytest.approx(1.2)


def test_a_job_whose_time_is_up_begins_nothing_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, {"a": 0.04, "c": 0.04})
    jobs = bench.jobs()
    bench.floor(jobs)
    repetition = Repetition(jobs, deadline=time.monotonic() - 1)
    repetition.run(bench.run_one)
    assert bench.ran == [] and set(stop_reasons(repetition).values()) == {TIME}
    assert deadline_of({"minutes": None}, jobs) is None
    assert (deadline_of({"minutes": 0}, jobs) or math.inf) < time.monotonic()


def test_what_was_killed_goes_on_from_its_records(tmp_path: Path) -> None:
    whole = Bench(tmp_path / "whole", {"a": 1.0, "c": 1.03}, {"a": 0.04, "c": 0.04})
    run(whole)
    cut = Bench(tmp_path / "cut", whole.times, whole.spread)
    jobs = cut.jobs()
    cut.floor(jobs)

    def killed(after: int) -> Callable[[Job], None]:
        def run_or_die(job: Job) -> None:
            if len(cut.ran) == after:
                raise KeyboardInterrupt
            cut.run_one(job)

        return run_or_die

    with pytest.raises(KeyboardInterrupt):
        Repetition(jobs).run(killed(3))
    again = Repetition(cut.jobs())
    again.run(cut.run_one)
    assert cut.ran == whole.ran and set(stop_reasons(again).values()) == {"max_repeats"}
    # And a call when all is done runs nothing.
    Repetition(cut.jobs()).run(cut.run_one)
    assert cut.ran == whole.ran


def test_a_stricter_repeat_until_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.012}, {"a": 0.006, "c": 0.006})
    first = run(bench, equivalence_margin=0.10)
    assert bench.ran == [] and stop_reasons(first) == {"a": "decided", "c": "decided"}
    before = first.skipped_optional()
    assert set(before.values()) != set(Repetition(bench.jobs(equivalence_margin=0.01)).skipped_optional().values())
    run(bench, equivalence_margin=0.01)
    assert bench.ran[:2] == [("a", 3), ("c", 3)]


def test_one_without_a_result_or_a_rival_is_not_measured_on(tmp_path: Path) -> None:
    empty = Bench(tmp_path / "none", {"a": 1.0, "b": 1.0})
    jobs = empty.jobs()
    empty.floor(jobs[:1] + jobs[2:3])
    repetition = Repetition(jobs)
    repetition.run(empty.run_one)
    assert "nothing to compare" in stop_reasons(repetition)["a"]
    assert all(runtime != "a" for runtime, _ in empty.ran)


def test_what_another_until_left_between_two_looks_is_finished_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, {"a": 0.04, "c": 0.04})
    run(bench, max_repeats=5)
    bench.ran.clear()
    # Looks at 4, 6 and 8 now: five repeats are none of them, and took all of a budget of 2 s.
    repetition = run(bench, min_repeats=4, budget_s=2.0)
    assert bench.ran == [] and set(stop_reasons(repetition).values()) == {"budget"}
    again = run(bench, min_repeats=4, budget_s=4.0)
    assert bench.ran == [("a", 5), ("c", 5)] and set(stop_reasons(again).values()) == {"budget"}


def test_a_cell_that_leaves_no_record_does_not_run_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"a": 1.0, "c": 1.03}, {"a": 0.04, "c": 0.04})
    jobs = bench.jobs()
    bench.floor(jobs)
    ran: list[str] = []
    with pytest.raises(BadInput, match=r"record\.json: gone"):
        Repetition(jobs).run(lambda job: ran.append(job.cell.id))
    assert len(ran) == 1
