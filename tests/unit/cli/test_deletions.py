"""Commands that delete touch what the study's plan or its records name, and nothing behind a link."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from factories import make_record, plan_study, train_cell
from transect.cli.results import clean, reset, retry
from transect.domain.errors import BadInput
from transect.domain.record import Cause, write_record
from transect.engine.plan_files import write_plan
from transect.planning.blocks import make_blocks

STUDY = """
name: mine
train: {repeats: 1, grids: [{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]}]}
"""
ELSEWHERE = "precious/photos~2019/beach.jpg"


@pytest.fixture
def planned(tmp_path):
    """A planned study, and a folder of somebody's beside it."""
    plan = plan_study(tmp_path, STUDY)
    write_plan(plan, make_blocks(plan))
    (tmp_path / ELSEWHERE).parent.mkdir(parents=True)
    (tmp_path / ELSEWHERE).touch()
    return plan


def failed(plan, cell_id: str | None = None) -> Path:
    """Write a failed record of the study's training; return its file."""
    (training,) = plan.stage("train").values()
    record = make_record(training.cell, study="mine", status="failed", cause=Cause.CRASH)
    path = plan.paths.record("train", cell_id or training.id)
    write_record(path, record.model_copy(update={"fingerprint": training.fingerprint}))
    return path


def there(folder: Path) -> set[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {p.relative_to(folder).as_posix() for p in files}


def stamp(plan, name: str, /, **facts: str) -> Path:
    path = plan.paths.environment(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts))
    return path


def test_reset_deletes_the_failed_record_and_the_failed_environments_of_its_plan_alone(planned, capsys):
    record = failed(planned)
    (training,) = planned.stage("train").values()
    mine = stamp(planned, "base", name="base", lock_hash=training.spec["lock"], status="failed")
    stamp(planned, "torch", name="torch", lock_hash="of another study", status="failed")
    stamp(planned, "notes", what="anybody's")
    (mine.parent / "list.json").write_text("[1, 2]")
    before = there(planned.paths.results)
    reset(planned.paths.folder, dry_run=True)
    printed = capsys.readouterr().out
    assert f"would delete train/{training.id}" in printed and "would delete environments/base.json" in printed
    assert there(planned.paths.results) == before
    reset(planned.paths.folder)
    gone = {path.relative_to(planned.paths.results).as_posix() for path in (record, mine)}
    assert before - there(planned.paths.results) == gone


def test_reset_deletes_skipped_records_only_where_asked_for(planned):
    (training,) = planned.stage("train").values()
    record = planned.paths.record("train", training.id)
    skipped = make_record(training.cell, study="mine", status="skipped", cause=Cause.UNSUPPORTED)
    write_record(record, skipped.model_copy(update={"fingerprint": training.fingerprint}))
    reset(planned.paths.folder)
    assert record.exists()
    reset(planned.paths.folder, skipped=True)
    assert not record.exists()
    failed(planned)
    reset(planned.paths.folder, failed=False, skipped=True)
    assert record.exists()


def test_a_dry_retry_names_the_failed_cells_and_changes_nothing(planned, capsys):
    failed(planned)
    (training,) = planned.stage("train").values()
    before = there(planned.paths.results)
    retry(planned.paths.folder, dry_run=True)
    assert capsys.readouterr().out.split("\n")[:2] == [f"would run train/{training.id}", "1 cells"]
    assert there(planned.paths.results) == before
    planned.paths.plan.unlink()
    with pytest.raises(BadInput, match=r"plan\.json"):
        retry(planned.paths.folder)


@pytest.mark.parametrize("linked", ["stage", "cell", "environments"])
def test_reset_touches_nothing_behind_a_link(planned, capsys, tmp_path, linked):
    record = failed(planned)
    (training,) = planned.stage("train").values()
    mine = stamp(planned, "base", name="base", lock_hash=training.spec["lock"], status="failed")
    place = {"stage": record.parents[1], "cell": record.parent, "environments": mine.parent}[linked]
    shutil.move(place, tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    before = there(tmp_path / "moved")
    reset(planned.paths.folder)
    assert there(tmp_path / "moved") == before
    printed = capsys.readouterr().out
    assert ("left train/" in printed and "is a link" in printed) == (linked != "environments")


def test_reset_without_a_plan_leaves_what_no_record_names(planned):
    planned.paths.plan.unlink()
    failed(planned)
    foreign = planned.paths.folder / "albums" / "holiday~2019" / "record.json"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("not a record of anybody's study")
    reset(planned.paths.folder)
    assert foreign.exists()


def test_clean_removes_cells_of_the_study_and_leaves_whatever_looks_like_one(planned, capsys, tmp_path):
    folder = planned.paths.folder
    kept = failed(planned)
    old = train_cell(batch=8)
    gone = planned.paths.record("train", old.id)
    write_record(gone, make_record(old, study="mine"))
    begun = planned.paths.spec("train", train_cell(batch=4).id)
    begun.parent.mkdir()
    cell = {"stage": "train"}
    begun.write_text(json.dumps({"study": "mine", "cell_id": begun.parent.name, "cell": cell}))
    others = planned.paths.record("train", train_cell(batch=2).id)
    write_record(others, make_record(train_cell(batch=2), study="another"))
    photos = folder / "precious/photos~2019/beach.jpg"
    shutil.copytree(tmp_path / "precious", folder / "precious")
    (folder / "linked").symlink_to(tmp_path / "precious")
    shutil.move(planned.paths.cell("train", others.parent.name), folder / "precious")
    clean(folder, dry_run=True)
    assert gone.exists() and begun.exists()
    assert capsys.readouterr().out.count("would remove") == 2
    clean(folder)
    printed = capsys.readouterr().out
    assert not gone.parent.exists() and not begun.parent.exists() and kept.exists()
    assert photos.exists() and (tmp_path / ELSEWHERE).exists()
    assert (folder / "precious" / others.parent.name / "record.json").exists()
    for name in ("precious/photos~2019", "linked/photos~2019", f"precious/{others.parent.name}"):
        assert f"left {name}: " in printed
    assert "2 cells that the study no longer has" in printed


def test_a_plan_removes_orders_and_stamps_of_its_own_blocks_alone(planned, tmp_path):
    (block,) = (block_of_plan for block_of_plan in make_blocks(planned) if block_of_plan.rule == "train")
    orders = planned.paths.block(block.rule, block.name)
    old = orders.with_name("old.json")
    old.write_text(orders.read_text().replace(f'"name": "{block.name}"', '"name": "old"', 1))
    stamp = planned.paths.stamp("train", "old")
    stamp.parent.mkdir(parents=True)
    stamp.write_text('{"state": "0123"}')
    somebodys = [orders.with_name("notes.json"), stamp.with_name("notes.json")]
    for path in somebodys:
        path.write_text('{"what": "anybody\'s"}')
    for place in ("specs", "blocks"):
        (tmp_path / place).mkdir()
        (tmp_path / place / stamp.name).write_text(stamp.read_text())
        (planned.paths.folder / place / "linked").symlink_to(tmp_path / place)
    write_plan(planned, make_blocks(planned))
    assert not old.exists() and not stamp.exists()
    assert all(path.exists() for path in somebodys)
    assert (tmp_path / "blocks/old.json").exists() and (tmp_path / "specs/old.json").exists()
