"""Runners whose Snakemake has gone: known as such, ended by the next run, and else by themselves with their cell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from cell_jobs import PROBE, make_job
from checkouts import ROOT
from transect.adapters.snakemake.flow import Flow
from transect.domain.errors import Interruption
from transect.domain.owner import SESSION, Owner, is_abandoned
from transect.engine import run_block
from transect.engine.interruption import end_abandoned


@pytest.mark.env
def test_what_was_asked_for_by_a_snakemake_that_has_died_is_abandoned():
    other = subprocess.Popen(["sleep", "6000"])
    session = replace(Owner.me(), pid=other.pid, start=0).text
    assert not is_abandoned(session)
    other.kill()
    # Not waited for yet: a zombie asks for nothing.
    for _ in range(3000):
        if is_abandoned(session):
            break
        time.sleep(0.1)
    assert is_abandoned(session)
    other.wait()
    assert is_abandoned(session)
    assert not is_abandoned(replace(Owner.me(), host="elsewhere", pid=other.pid).text)
    assert not is_abandoned("")


@pytest.mark.env
def test_a_run_ends_the_runners_that_a_killed_run_left_in_its_results(tmp_path):
    gone = subprocess.Popen(["true"])
    dead, alive = replace(Owner.me(), pid=gone.pid, start=1).text, Owner.me().text
    gone.wait()
    # As the rules start a runner, with what waits in its place.
    (line,) = re.findall(r'"(.*) \{params.call:q\}"', (ROOT / "workflow/rules/blocks.smk").read_text())
    block = SimpleNamespace(_blocks={("train", "n1"): SimpleNamespace(state="0" * 16)}, results="made", folder="made/x")
    words = [*line.partition("{params.python:q} ")[2].split(), *Flow.call(cast("Flow", block), "train", "n1")]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(6000)", *words],
            cwd=tmp_path / folder,
            env=os.environ | {SESSION: session},
        )
        for folder, session in (("ours", dead), ("ours", alive), ("theirs", dead))
        if (tmp_path / folder).mkdir(exist_ok=True) is None
    ]
    try:
        assert end_abandoned(tmp_path / "ours" / "made") == 1
        assert [process.poll() is None for process in started] == [False, True, True]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_runner_ends_with_its_cell_and_not_with_its_block(tmp_path, monkeypatch):
    """Its Snakemake dies while the first of three cells runs."""
    ran = []
    monkeypatch.setattr(run_block, "open_guard", nullcontext)
    watching = SimpleNamespace(note=ran.append, make_if_due=lambda: None)
    for name in ("prepare_allocation", "check_locks", "Progress", "EarlyReport"):
        monkeypatch.setattr(run_block, name, lambda _: watching)
    monkeypatch.setattr(run_block, "run_job", lambda job, *_: job.cell.id)
    monkeypatch.setattr(run_block, "is_abandoned", lambda: bool(ran))
    cells = [PROBE.changed(repeat=repeat) for repeat in range(3)]
    jobs = [make_job(tmp_path, cell, cell_id=cell.id) for cell in cells]
    with pytest.raises(Interruption):
        run_block.run_jobs(jobs, jobs[0].paths, attempt=1)
    assert ran == [cells[0].id]
