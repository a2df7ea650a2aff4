"""A disturbed measurement is repeated within its budget, and marked when it stays disturbed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from transect.domain.cell import Cell
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause
from transect.engine.attempts import Attempt
from transect.engine.job import Job, Result
from transect.engine.run_cell import _measure
from transect.engine.stage_helpers import StageRunner
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.measure import guard
from transect.measure.guard import Guard, snapshot

pytestmark = pytest.mark.env


class Counts(StageRunner):
    """A stage whose payload leaves a line, so that its runs can be counted."""

    def __init__(self, journal: Path, measures: bool = True, code: int = 0) -> None:
        self.journal, self.measures, self.code, self.keeps = journal, measures, code, ()

    def prepare(self, job: Job) -> tuple[str, Request]:
        script = f"open({str(self.journal)!r}, 'a').write('ran\\n'); raise SystemExit({self.code})"
        return "plain", Request(command=[sys.executable, "-c", script])

    def inputs(self, job: Job) -> list[str]:
        return []

    def collect(self, job: Job, outcome: Outcome) -> Result:
        return Result.failed(Cause.CRASH, "code") if outcome.code else Result()

    def runs(self) -> int:
        return len(self.journal.read_text().splitlines())


class Noisy(Guard):
    """Sees a stranger in the first looks, and nobody else.

    A window of no length tells nothing of cores: one tick of the kernel's clock looks like a busy one.
    """

    def __init__(self, noisy_looks: int) -> None:
        self.looks, self.noisy_looks = 0, noisy_looks

    def look(self):
        self.looks += 1
        stranger = [{"pid": 1, "name": "backup", "cores": 1.0}] if self.looks <= self.noisy_looks else []
        return [snapshot(0) | {"foreign": stranger, "unseen_cores": 0.0}]


def job(tmp_path: Path, **limits: float) -> Job:
    cell = Cell.of(stage="bench", benchmark="memory-bandwidth-probe")
    every = {"seconds": 60, "memory_mb": None, "repeats_if_disturbed": 2, "repeat_seconds": 60}
    paths = StudyPaths(results=tmp_path, study="s")
    made = Job(
        spec={"cell_limits": every | limits, "system": {}},
        cell=cell,
        paths=paths,
        python=sys.executable,
        bin=None,
        environment={},
    )
    made.folder.mkdir(parents=True)
    return made


@pytest.mark.parametrize(
    ("noisy", "limits", "runs", "disturbed"),
    [
        (0, {}, 1, False),
        (1, {}, 2, False),
        (9, {}, 3, True),
        (9, {"repeats_if_disturbed": 0}, 1, True),
        (9, {"repeat_seconds": 0}, 1, True),
    ],
)
def test_repeats_stay_within_the_budget(tmp_path, noisy, limits, runs, disturbed):
    stage, made = Counts(tmp_path / "journal"), job(tmp_path, **limits)
    result, _, seen = _measure(made, stage, Attempt(made.folder), "f", Noisy(2 * noisy))
    assert stage.runs() == runs
    assert result.details["disturbed"] is disturbed
    assert result.details["disturbed_repeats"] == runs - 1
    assert bool(result.details["disturbed_by"]) is disturbed
    assert json.dumps(seen), "what the guard saw goes into the record"


def test_a_computation_or_a_failure_is_not_repeated(tmp_path):
    made = job(tmp_path)
    for stage in (Counts(tmp_path / "computes", measures=False), Counts(tmp_path / "fails", code=3)):
        result, _, _ = _measure(made, stage, Attempt(made.folder), "f", Noisy(18))
        assert stage.runs() == 1
        assert result.details["disturbed"] is True


def test_what_was_seen_after_a_payload_serves_the_next_one_that_follows_at_once(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(guard.time, "monotonic", lambda: clock[0])
    watch = Noisy(0)
    first = watch.before()
    seen = watch.after()
    assert watch.before() is seen is not first and watch.looks == 2
    # Something lay between the two payloads.
    clock[0] += 1
    assert watch.before() is not seen and watch.looks == 3
    # A stranger who was seen is looked for again.
    watch = Noisy(1)
    watch.after()
    assert watch.before()[0]["foreign"] == [] and watch.looks == 2
