"""A second attempt at a cell goes on with what the first one kept, if it was the very same work."""

from __future__ import annotations

import json

import pytest

from cell_jobs import Noisy, OneLine, make_job
from transect.domain.record import Cause, Status
from transect.engine import run_cell
from transect.engine.attempts import Attempt
from transect.engine.job import Job, Result
from transect.engine.run_cell import fingerprint_of, run_job

pytestmark = pytest.mark.env

STATE = "checkpoint.bin"


class Keeps(OneLine):
    """A stage whose payload notes what of an earlier attempt it found."""

    def prepare(self, job):
        runner_files = (job.spec_file.name, "attempt.json")
        self.code = f"print({sorted(path.name for path in job.folder.iterdir() if path.name not in runner_files)!r})"
        return super().prepare(job)

    def collect(self, job, outcome):
        return Result(details={"found": job.log.read_text().strip()})


@pytest.fixture
def stage(monkeypatch):
    made = Keeps(keeps=("checkpoint.*",))
    monkeypatch.setattr(run_cell, "RUNNERS", {"bench": made})
    monkeypatch.setenv("TRANSECT_SNAKEMAKE", "this session")
    return made


def leave(made: Job, stage: Keeps, *, kept: str = "", work: str | None = None) -> None:
    """Leave what a killed attempt leaves: its note, a checkpoint, and other files."""
    Attempt(made.folder).begin(work or fingerprint_of(made, stage)[0], kept)
    (made.folder / STATE).write_text("half")
    (made.folder / "result.json").write_text("{}")


def found(record) -> list[str]:
    return json.loads(record.details["found"].replace("'", '"'))


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("session", ["this session", "another one"])
def test_the_same_work_goes_on(tmp_path, stage, monkeypatch, attempt, session):
    made = make_job(tmp_path)
    with monkeypatch.context() as patched:
        patched.setenv("TRANSECT_SNAKEMAKE", session)
        leave(made, stage)
    record = run_job(made, attempt, Noisy())
    assert record.status is Status.OK and found(record) == [STATE]
    assert (made.folder / STATE).read_text() == "half"
    # A record ends the attempt: what it kept is of no use to the next.
    (made.folder / "record.json").unlink()
    assert found(run_job(made, 1, Noisy())) == []


def test_a_folder_stays_whole_with_the_file_in_it_that_is_kept(tmp_path, stage):
    stage.keeps, made = ("turn-*/state.bin",), make_job(tmp_path)
    leave(made, stage)
    for name in ("turn-1/state.bin", "turn-1/how-far", "turn-2/how-far"):
        (made.folder / name).parent.mkdir(exist_ok=True)
        (made.folder / name).write_text(name)
    assert found(run_job(made, 1, Noisy())) == ["turn-1"]
    assert sorted(path.name for path in (made.folder / "turn-1").iterdir()) == ["how-far", "state.bin"]


@pytest.mark.parametrize("attempt", [1, 2])
def test_other_work_begins_anew(tmp_path, stage, attempt):
    made = make_job(tmp_path)
    leave(made, stage, work="0" * 16)
    assert found(run_job(made, attempt, Noisy())) == []
    assert not (made.folder / STATE).exists()


def test_of_a_folder_all_is_kept_where_one_file_is(tmp_path, stage):
    stage.keeps, made = ("turn/checkpoint.*",), make_job(tmp_path)
    leave(made, stage)
    (made.folder / "turn").mkdir()
    (made.folder / "turn" / "plan").write_text("a plan")
    # Without a checkpoint in it nothing is gone on with.
    assert run_job(made, 2, Noisy()).cause is Cause.KILLED
    (made.folder / "turn").mkdir()
    for name in ("plan", STATE):
        (made.folder / "turn" / name).write_text(name)
    leave(made, stage)
    record = run_job(made, 2, Noisy())
    assert record.status is Status.OK and found(record) == ["turn"]
    assert (made.folder / "turn" / "plan").exists()
    leave(made, stage, kept=run_cell._digest_of([made.folder / "turn" / STATE]))
    assert found(run_job(made, 1, Noisy())) == []


def test_an_attempt_that_got_no_further_is_the_last(tmp_path, stage):
    made = make_job(tmp_path)
    leave(made, stage)
    kept = run_cell._digest_of([made.folder / STATE])
    leave(made, stage, kept=kept)
    record = run_job(made, 2, Noisy())
    assert (record.status, record.cause) == (Status.FAILED, Cause.KILLED)
    # In another session nobody knows why it ended: the cell begins anew, and where a stage keeps nothing.
    for name, keeps in (("other", stage.keeps), ("nothing", ())):
        stage.keeps, made = keeps, make_job(tmp_path / name)
        leave(made, stage, kept=kept)
        assert found(run_job(made, 1, Noisy())) == []
