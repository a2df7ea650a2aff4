"""A second attempt at a cell goes on with what the first one kept, if it was the very same work."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from transect.domain.cell import Cell
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, Status
from transect.engine import run_cell
from transect.engine.attempts import Attempt
from transect.engine.job import Job, Result
from transect.engine.run_cell import fingerprint_of, run_job
from transect.engine.stage_helpers import StageRunner
from transect.launch import Request
from transect.measure.guard import Guard, snapshot

pytestmark = pytest.mark.env

STATE = "checkpoint.bin"


class Keeps(StageRunner):
    """A stage whose payload notes what of an earlier attempt it found."""

    def __init__(self) -> None:
        self.measures, self.keeps = False, ("checkpoint.*",)

    def prepare(self, job):
        own = (job.spec_file.name, "attempt.json")
        found = sorted(path.name for path in job.folder.iterdir() if path.name not in own)
        return "plain", Request(command=[sys.executable, "-c", f"print({found!r})"])

    def inputs(self, job):
        return []

    def collect(self, job, outcome):
        return Result(details={"found": job.log.read_text().strip()})


class Calm(Guard):
    def look(self):
        return [snapshot(0) | {"foreign": [], "unseen_cores": 0.0}]


@pytest.fixture
def stage(monkeypatch):
    made = Keeps()
    monkeypatch.setattr(run_cell, "RUNNERS", {"bench": made})
    monkeypatch.setenv("TRANSECT_SNAKEMAKE", "this session")
    return made


def job(tmp_path: Path) -> Job:
    cell = Cell.of(stage="bench", benchmark="memory-bandwidth-probe")
    limits = {"seconds": 60, "memory_mb": None, "repeats_if_disturbed": 0, "repeat_seconds": 60}
    spec = {"study": "s", "cell_limits": limits, "fingerprint": "f" * 16, "inputs": {}, "cell": cell.axes()}
    made = Job(
        spec=spec,
        cell=cell,
        paths=StudyPaths(results=tmp_path, study="s"),
        python=sys.executable,
        bin=None,
        environment={},
    )
    made.folder.mkdir(parents=True)
    return made


def leave(made: Job, stage: Keeps, *, kept: str = "", work: str | None = None, state: str = "half") -> None:
    """Leave what a killed attempt leaves: its note, a checkpoint, and other files."""
    fingerprint = work or fingerprint_of(made, stage)[0]
    Attempt(made.folder).begin(fingerprint, kept)
    (made.folder / STATE).write_text(state)
    (made.folder / "result.json").write_text("{}")


def found(record) -> list[str]:
    return json.loads(record.details["found"].replace("'", '"'))


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("session", ["this session", "another one"])
def test_the_same_work_goes_on(tmp_path, stage, monkeypatch, attempt, session):
    made = job(tmp_path)
    with monkeypatch.context() as other:
        other.setenv("TRANSECT_SNAKEMAKE", session)
        leave(made, stage)
    record = run_job(made, attempt, Calm())
    assert record.status is Status.OK and found(record) == [STATE]
    assert (made.folder / STATE).read_text() == "half"
    # A record ends the attempt: what it kept is of no use to the next.
    (made.folder / "record.json").unlink()
    assert found(run_job(made, 1, Calm())) == []


@pytest.mark.parametrize("attempt", [1, 2])
def test_other_work_begins_anew(tmp_path, stage, attempt):
    made = job(tmp_path)
    leave(made, stage, work="0" * 16)
    assert found(run_job(made, attempt, Calm())) == []
    assert not (made.folder / STATE).exists()


def test_an_attempt_that_got_no_further_is_the_last(tmp_path, stage):
    made = job(tmp_path)
    leave(made, stage)
    kept = run_cell._digest_of([made.folder / STATE])
    leave(made, stage, kept=kept)
    record = run_job(made, 2, Calm())
    assert (record.status, record.cause) == (Status.FAILED, Cause.KILLED)
    # In another session nobody knows why it ended: the cell begins anew, and where a stage keeps nothing.
    for name, keeps in (("other", stage.keeps), ("nothing", ())):
        stage.keeps, made = keeps, job(tmp_path / name)
        leave(made, stage, kept=kept)
        assert found(run_job(made, 1, Calm())) == []
