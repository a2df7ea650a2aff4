"""Files from outside count by content, wherever a study names them: the block and its runner see it."""

from __future__ import annotations

import os
import sqlite3

import pytest

from transect.adapters.snakemake.flow import facts_of_plan
from transect.domain.checksums import Checksums
from transect.engine.job import load_job
from transect.engine.stage import RUNNERS
from transect.planning.blocks import make_blocks
from transect.planning.plan import make_plan
from transect.planning.stage import STAGES
from transect.planning.study import find_system

STUDIES = {
    "ingest": "name: s\ningest: {{paths: [{path}]}}\n",
    "docking-probe": "name: s\nbench: {{grids: [{{benchmarks: [docking-probe], options: [{{deck: {path}}}]}}]}}\n",
    "minibude": "name: s\nbench: {{grids: [{{benchmarks: [minibude], options: [{{deck: {path}}}]}}]}}\n",
}


@pytest.mark.parametrize("name", STUDIES)
def test_content_that_changes_behind_size_and_time_is_seen(tmp_path, name):
    folder, study, system = tmp_path / "given", tmp_path / "s.yaml", find_system("laptop")
    folder.mkdir()
    for file in ("ligand.in", "protein.in", "forcefield.in", "poses.in"):
        (folder / file).write_text("one")
    study.write_text(STUDIES[name].format(path=folder))

    def look():
        """Return the state of the block, and what the cell was made from."""
        plan = make_plan(study, system, tmp_path / "results")
        (planned,) = plan
        assert STAGES.get(planned.cell.stage).files(planned.spec) == [folder]
        (block,) = facts_of_plan(plan, make_blocks(plan)).blocks
        stamp = plan.paths.environment("docking")
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text('{"python": "python", "status": "ok"}')
        job = load_job(planned.spec, plan.paths)
        return block.state, RUNNERS.get(planned.cell.stage).inputs(job)

    # With and without kept checksums.
    for kept in (False, True):
        if kept:
            (tmp_path / "results" / "s").mkdir(parents=True)
        before = look()
        assert look() == before
        file = folder / "poses.in"
        facts = file.stat()
        file.write_text("two")
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        state, inputs = look()
        assert state != before[0] and inputs != before[1]
        file.write_text("one")
        assert look() == before


def test_a_deck_that_is_not_there_is_for_the_benchmark_to_say(tmp_path):
    study = tmp_path / "s.yaml"
    study.write_text(STUDIES["docking-probe"].format(path=tmp_path / "none"))
    plan = make_plan(study, find_system("laptop"), tmp_path / "results")
    (planned,) = plan
    assert STAGES.get("bench").files(planned.spec) == []


def test_kept_checksums_tell_no_names(tmp_path, monkeypatch):
    monkeypatch.setattr("transect.domain.files.YOUNG_NS", 0)
    files = [tmp_path / "mails" / name for name in ("Anna", "Bob \udcff")]
    files[0].parent.mkdir()
    kept = tmp_path / "kept.sqlite"
    known = Checksums(kept)
    for file in files:
        file.write_text(str(file.name == "Anna"))
        known.of(file, file.stat())
    known.save()
    with sqlite3.connect(kept) as database:
        assert database.execute("SELECT count(*) FROM kept").fetchone() == (2,)
    assert b"Anna" not in kept.read_bytes() and b"Bob" not in kept.read_bytes()
