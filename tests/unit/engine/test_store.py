"""Whether a record holds: each way in which it does not, and what the others of its study make of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from factories import make_record, plan_study
from sealed import resealed
from transect.adapters.snakemake import finalize
from transect.adapters.snakemake.flow import facts_of_plan
from transect.domain.files import sha256_file
from transect.domain.record import Cause, Status, read_record, write_record
from transect.engine.job import Job, load_job
from transect.engine.plan_files import write_plan
from transect.engine.run_block import _drop_stale
from transect.engine.stage import RUNNERS
from transect.engine.staleness import Staleness, newest_change, stale_stamps
from transect.engine.store import Damaged, Holds, fingerprint_of, kept, state, used_limits
from transect.engine.verify import verify_records
from transect.planning.blocks import make_blocks

STUDY = """
name: mine
limits: {seconds: 100}
workloads: {iris-mlp: {epochs: 2}}
train: {repeats: 1, grids: [{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}]}
"""
# What each stage leaves that others take; nobody takes from a training here.
FILES = {"dataset": "data.npz", "reference": "trajectory.npz", "train": "samples.npz"}


class Finished:
    """A study whose cells all have a record that holds, made without a payload."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = plan_study(folder, STUDY)
        self.paths = self.plan.paths
        for name, lock in {pair for planned in self.plan for pair in planned.environments.items()}:
            stamp = self.paths.environment(name)
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.write_text(json.dumps({"name": name, "lock_hash": lock, "python": "/python", "status": "ok"}))
        write_plan(self.plan, make_blocks(self.plan))
        for planned in self.plan:
            self.write(load_job(planned.spec, self.paths))
        self.stamp()

    def write(self, job: Job, **changes: Any) -> None:
        """Write what a run of a cell leaves."""
        fingerprint, inputs = fingerprint_of(job, RUNNERS.get(job.cell.stage))
        name = FILES[job.cell.stage]
        job.folder.mkdir(parents=True, exist_ok=True)
        job.spec_file.write_text(json.dumps(job.spec))
        (job.folder / name).write_text(job.cell.stage)
        files = {name: sha256_file(job.folder / name)}
        facts = {"files": files, "fingerprint": fingerprint, "inputs": inputs, "details": {"files": files}}
        write_record(job.folder / "record.json", make_record(job.cell, study="mine", **facts | changes))

    def stamp(self) -> None:
        """Write the stamps of all blocks."""
        blocks = make_blocks(self.plan)
        for block, known in zip(blocks, facts_of_plan(self.plan, blocks).blocks, strict=True):
            path = self.paths.stamp(block.rule, block.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            looked = newest_change(self.paths.record(*planned.key) for planned in block.cells)
            limits = used_limits(self.plan.study.limits.model_dump())
            path.write_text(json.dumps({"state": known.state, "limits": limits, "records_ns": looked}))

    def again(self, study: str = STUDY) -> None:
        """Plan anew, as the next call does."""
        self.plan = plan_study(self.folder, study)

    def record(self, stage: str) -> Path:
        (planned,) = self.plan.stage(stage).values()
        return self.paths.record(*planned.key)

    def job(self, stage: str) -> Job:
        (planned,) = self.plan.stage(stage).values()
        return load_job(planned.spec, self.paths)

    def why(self) -> dict[str, list[tuple[str, str]]]:
        """Return the reasons of the cells that would run again, by stage."""
        return {p.cell.stage: [(r.kind, r.text) for r in reasons] for p, reasons in Staleness(self.plan)}

    def stale_blocks(self) -> set[str]:
        """Return the rules of the blocks whose stamp Snakemake is not to go by."""
        blocks = make_blocks(self.plan)
        states = [block.state for block in facts_of_plan(self.plan, blocks).blocks]
        return {path.parent.name for path in stale_stamps(self.plan, blocks, states)}

    def wrong(self) -> set[str]:
        """Return the stages whose record `verify` finds wrong."""
        return {verdict.stage for verdict in verify_records(self.paths) if verdict.wrong}


@pytest.fixture
def done(tmp_path: Path) -> Iterator[Finished]:
    yield Finished(tmp_path)


def test_what_was_not_touched_holds_for_everybody(done: Finished) -> None:
    assert done.why() == {} and done.stale_blocks() == set() and done.wrong() == set()
    for stage in FILES:
        assert kept(done.job(stage)) and isinstance(state(done.paths, done.job(stage).spec), Holds)
    assert _drop_stale([done.job(stage) for stage in FILES]) == []
    # It holds without what stands beside it, and is missing when it has gone.
    done.paths.spec("train", done.record("train").parent.name).unlink()
    assert done.why() == {} and done.stale_blocks() == set()
    done.record("train").unlink()
    done.again()
    assert done.why() == {"train": [("missing", "it has no record")]}
    assert done.stale_blocks() == {"train"} and not kept(done.job("train"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def edited_by_hand(path: Path) -> None:
    path.write_text(path.read_text().replace('"started": "2026', '"started": "2025'))


def of_another_cell(path: Path) -> None:
    resealed(path, lambda content: content.update(cell_id="other~01234567"))


def without_checksum(path: Path) -> None:
    content = json.loads(path.read_text())
    del content["checksum"]
    path.write_text(json.dumps(content))


def without_fingerprint(path: Path) -> None:
    resealed(path, lambda content: content.pop("fingerprint"))


def other_file(path: Path) -> None:
    (path.parent / FILES[path.parts[-3]]).write_text("exchanged")


def lost_file(path: Path) -> None:
    (path.parent / FILES[path.parts[-3]]).unlink()


DAMAGE = [cut, edited_by_hand, of_another_cell, without_checksum, without_fingerprint, other_file, lost_file]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_named_and_kept_aside_and_what_takes_from_it_is_asked_again(
    done: Finished, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    path = done.record("reference")
    damage(path)
    done.again()
    why = done.why()
    assert [kind for kind, _ in why.pop("reference")] == ["damaged"]
    ((kind, text),) = why.pop("train")
    assert kind == "input" and path.parent.name in text and why == {}
    assert done.wrong() == {"reference"}
    assert len(done.stale_blocks()) == 1
    assert isinstance(state(done.paths, done.job("reference").spec), Damaged)
    todo = _drop_stale([done.job(stage) for stage in FILES])
    assert [job.cell.stage for job in todo] == ["reference", "train"]
    assert done.paths.damaged("reference", path.parent.name).exists() and not path.exists()
    assert "made again" in capsys.readouterr().err
    # It may come out as it was.
    assert done.paths.record_aside("train", done.record("train").parent.name).exists()


def test_a_file_that_nobody_takes_is_for_verify_alone(done: Finished) -> None:
    other_file(done.record("train"))
    done.again()
    assert done.why() == {} and done.stale_blocks() == set() and kept(done.job("train"))
    assert done.wrong() == {"train"}


def test_another_parameter_runs_what_is_told_it_and_no_more(done: Finished) -> None:
    done.again(STUDY.replace("epochs: 2", "epochs: 2, learning_rate: 0.5"))
    why = done.why()
    assert set(why) == {"reference", "train"}
    changed = [text for kind, text in why["reference"] if kind == "parameter"]
    assert len(changed) == 1 and changed[0].endswith("learning_rate: 0.01 -> 0.5")
    assert "train" in done.stale_blocks()


@pytest.mark.parametrize(
    ("change", "limits", "stale"),
    [
        ({"status": "failed", "cause": "timeout"}, "seconds: 200", True),
        ({"status": "failed", "cause": "timeout"}, "seconds: 90", False),
        ({"details": {"payload_s": 95.0}}, "seconds: 90", True),
        ({}, "seconds: 90", False),
    ],
)
def test_a_record_holds_as_long_as_its_limits_do(
    done: Finished, change: dict[str, Any], limits: str, stale: bool
) -> None:
    resealed(done.record("train"), lambda content: content.update(limits={"seconds": 100, "memory_mb": None}, **change))
    done.stamp()
    done.again(STUDY.replace("seconds: 100", limits))
    assert {stage: [kind for kind, _ in reasons] for stage, reasons in done.why().items()} == (
        {"train": ["limit"]} if stale else {}
    )
    assert done.stale_blocks() == ({"train"} if stale else set())
    assert kept(done.job("train")) is not stale


def test_an_input_that_came_out_otherwise_is_named(done: Finished) -> None:
    (done.record("reference").parent / FILES["reference"]).write_text("another")
    sha = hashlib.sha256(b"another").hexdigest()
    resealed(done.record("reference"), lambda content: content.update(files={"trajectory.npz": sha}))
    assert done.why() == {"train": [("input", "trajectory.npz")]}
    assert not kept(done.job("train")) and done.wrong() == {"train"}


def test_what_takes_a_cell_that_is_judged_otherwise_runs_again(done: Finished) -> None:
    resealed(done.record("dataset"), lambda content: content.update(status="failed", cause="wrong-result"))
    # The same bytes, which are now known to be wrong.
    assert done.why()["reference"] == [("input", "data")] and "dataset" not in done.why()


@pytest.mark.parametrize("cause", [Cause.UNSUPPORTED, Cause.MISSING_DEPENDENCY])
def test_what_it_lacked_may_be_there_now_when_its_block_runs_anyway(done: Finished, cause: Cause) -> None:
    done.write(done.job("train"), status=Status.SKIPPED, cause=cause)
    assert done.why() == {} and not kept(done.job("train"))


def test_what_a_cell_lacked_stays_said_when_its_block_ends_at_another_one(
    done: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    done.write(done.job("train"), status=Status.SKIPPED, cause=Cause.UNSUPPORTED)
    done.record("reference").unlink()
    for stamp in (done.paths.folder / "blocks").glob("*/*.json"):
        stamp.unlink()
    monkeypatch.setattr(finalize, "make_report_of", lambda paths: None)
    monkeypatch.setattr(finalize, "collect", dict)
    finalize.settle(done.plan, make_blocks(done.plan))
    causes = {stage: read_record(done.record(stage)).cause for stage in FILES}
    assert causes == {"dataset": None, "reference": Cause.CRASH, "train": Cause.MISSING_DEPENDENCY}
    done.write(done.job("train"), status=Status.SKIPPED, cause=Cause.UNSUPPORTED)
    finalize.settle(done.plan, make_blocks(done.plan))
    assert read_record(done.record("train")).cause is Cause.UNSUPPORTED


def test_sources_that_nobody_can_read_are_a_reason_like_others(done: Finished) -> None:
    job = done.job("train")
    job.spec_file.write_text(json.dumps(job.spec | {"sources": "0", "fingerprint": "0"}))
    resealed(done.record("train"), lambda content: content.update(fingerprint="0"))
    done.paths.sources(job.spec["sources"]).write_text("{")
    assert [reason.kind for reason in state(done.paths, job.spec).reasons] == ["source"]


def test_a_plug_in_that_raises_makes_no_record_hold(done: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    def inputs(self: object, job: Job) -> list[str]:
        raise RuntimeError("lost")

    monkeypatch.setattr(type(RUNNERS.get("train")), "inputs", inputs)
    assert done.why() == {"train": [("input", "RuntimeError: lost")]} and not kept(done.job("train"))


def test_a_stamp_of_another_state_or_of_nobody_is_stale(done: Finished) -> None:
    stamps = sorted((done.paths.folder / "blocks").glob("*/*.json"))
    stamps[0].write_text(json.dumps(json.loads(stamps[0].read_text()) | {"state": "another"}))
    stamps[1].write_text("{")
    assert done.stale_blocks() == {stamp.parent.name for stamp in stamps[:2]}
