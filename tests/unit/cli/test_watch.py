"""What `transect watch` says of a study that has not begun, runs, has died, was stopped or is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from checkouts import ROOT
from factories import make_record, train_cell, write_records
from result_runs import write_planned
from transect.cli import watch as watch_command
from transect.domain.owner import SILENT_S, Owner, user_name
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause
from transect.engine.claim import Claim
from transect.engine.locks import leased
from transect.engine.plan_files import planned_cells
from transect.engine.progress import row_of, start_progress
from transect.engine.watching import Watcher

CELLS = [train_cell(repeat=repeat) for repeat in range(4)]
PRINT = "made-up"
NOBODY = {
    "user": user_name(),
    "pid": 2**22 + 1,
    "host": os.uname().nodename,
    "start": 1,
    "since": "2026-03-01T04:00:00Z",
}


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    """A study of four cells as planned: of the first two one is ok and one failed."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    paths = StudyPaths(results=tmp_path / "results", study="made-up")
    write_planned(paths.folder, CELLS, PRINT)
    record(paths, 0)
    record(paths, 1, status="failed", cause=Cause.CRASH, message="it\x1b[2Jfell")
    return paths


def record(paths: StudyPaths, place: int, fingerprint: str = PRINT, **how: Any) -> None:
    made = make_record(CELLS[place], study="made-up", fingerprint=fingerprint, **how)
    write_records(paths.folder, made)
    with paths.progress.open("a") as stream:
        stream.write(json.dumps(row_of(made)) + "\n")


def claimed(paths: StudyPaths, **facts: object) -> None:
    paths.claim.parent.mkdir(parents=True, exist_ok=True)
    paths.claim.write_text(json.dumps(NOBODY | facts))


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")}


def block(paths: StudyPaths) -> None:
    """Write the orders of the block that has all cells."""
    file = paths.block("train", "n1")
    file.parent.mkdir(parents=True)
    specs = [{"cell": {"stage": cell.stage}, "cell_id": cell.id} for cell in CELLS]
    file.write_text("".join(json.dumps(line) + "\n" for line in [{"about": {}}, *specs]))


def test_a_study_that_runs_is_seen_with_the_cells_at_work(paths: StudyPaths) -> None:
    block(paths)
    claim = Claim(paths.results, "made-up")
    claim.take()
    for place, runner in ((2, Owner.me().facts()), (3, NOBODY)):  # a run before was killed in the last one
        paths.cell("train", CELLS[place].id).mkdir()
        (paths.cell("train", CELLS[place].id) / "attempt.json").write_text(json.dumps(runner))
    try:
        assert Watcher(paths).look().running == (), "as long as nobody runs its block, an attempt is a rest"
        with leased(paths, [("train", "n1")]):
            before = tree(paths.results)
            view = Watcher(paths).look()
            assert tree(paths.results) == before
    finally:
        claim.give_back()
    assert (view.state, view.ok, view.failed, view.left, view.cells) == ("running", 1, 1, 1, 4)
    assert view.running == (f"train/{CELLS[2].id}",) and view.goes_on
    assert f"pid {os.getpid()} on {os.uname().nodename}" in view.words


def test_blocks_that_go_on_without_their_snakemake_are_a_running_study(paths: StudyPaths) -> None:
    claimed(paths)
    with leased(paths, [("train", "n1")]):
        view = Watcher(paths).look()
    assert view.state == "running" and "its Snakemake has gone" in view.words


@pytest.mark.parametrize(
    ("host", "silent_s", "state"),
    [(os.uname().nodename, 0.0, "died"), ("elsewhere", 60.0, "running"), ("elsewhere", SILENT_S + 60, "died")],
)
def test_a_run_that_died_is_told_from_one_that_lives(paths: StudyPaths, host: str, silent_s: float, state: str) -> None:
    claimed(paths, host=host)
    then = time.time() - silent_s
    os.utime(paths.claim, (then, then))
    before = tree(paths.results)
    view = Watcher(paths).look()
    assert view.state == state and f"pid {NOBODY['pid']} on {host}" in view.words
    assert tree(paths.results) == before


def test_a_study_that_ended_is_stopped_or_done(paths: StudyPaths) -> None:
    watcher = Watcher(paths)
    assert (watcher.look().state, watcher.look().left) == ("stopped", 2)
    record(paths, 2, status="skipped", cause=Cause.UNSUPPORTED)
    record(paths, 3, fingerprint="of an earlier plan")
    assert watcher.look().left == 1
    record(paths, 3)
    paths.report.write_text("page")
    view = watcher.look()
    assert (view.state, view.left, view.skipped, view.goes_on) == ("done", 0, 1, False)
    assert view.report == str(paths.report) and view.left_s is None
    assert [line.split()[0] for line in view.last] == ["ok", "FAILED", "skipped", "ok", "ok"]


def test_what_is_damaged_is_no_result_and_no_end_of_the_watch(paths: StudyPaths) -> None:
    paths.record("train", CELLS[0].id).write_text("{")
    with paths.progress.open("ab") as stream:
        stream.write(b'5\n{"status": "odd"}\n\xff\xfe\n{"todo": 3}\n{"stage": "train"')
    view = Watcher(paths).look()
    assert (view.ok, view.damaged, view.left) == (0, 1, 2) and len(view.last) == 2
    paths.plan.write_text("{")
    assert planned_cells(paths) is None
    assert Watcher(paths).look().state == "stopped"


def test_the_journal_of_another_run_is_read_from_its_start(paths: StudyPaths) -> None:
    watcher = Watcher(paths)
    assert len(watcher.look().last) == 2
    start_progress(paths, {"train": 3})
    assert watcher.look().last == ()
    record(paths, 2)
    claim = Claim(paths.results, "made-up")
    claim.take()
    try:
        view = watcher.look()
    finally:
        claim.give_back()
    assert len(view.last) == 1 and view.left_s == pytest.approx(20)


def test_a_pipe_gets_what_is_new_until_the_study_is_done(paths: StudyPaths, transect: Any, monkeypatch) -> None:
    claimed(paths, host="elsewhere")
    turns = iter([lambda: None, lambda: record(paths, 2), lambda: (record(paths, 3), paths.claim.unlink())])
    monkeypatch.setattr(watch_command.time, "sleep", lambda _: next(turns)())
    code, out, _ = transect("watch", "made-up", "--results", paths.results)
    lines = out.splitlines()
    assert code == 0 and "\x1b" not in out and "\\x1b[2Jfell" in out
    assert [line for line in lines if " cells: " in line] == [
        "4 cells: 1 ok, 1 failed, 0 skipped, 0 running, 2 left",
        "4 cells: 2 ok, 1 failed, 0 skipped, 0 running, 1 left",
        "4 cells: 3 ok, 1 failed, 0 skipped, 0 running, 0 left",
    ]
    assert sum(CELLS[2].id in line for line in lines) == 1
    assert lines[0].startswith("made-up: running: by ") and "made-up: done" in lines


def test_a_watch_of_a_dead_run_ends_with_1_and_one_look_with_0(paths: StudyPaths, transect: Any) -> None:
    claimed(paths)
    assert transect("watch", paths.folder)[0] == 1
    code, out, _ = transect("watch", paths.folder, "--json")
    assert code == 0 and json.loads(out)["state"] == "died"
    paths.claim.unlink()
    assert transect("watch", paths.folder, "--once")[1].startswith("made-up: stopped: ")


def test_a_study_that_has_not_begun_is_named_by_name_or_file(tmp_path: Path, transect: Any) -> None:
    code, out, _ = transect("watch", "quick", "--results", tmp_path, "--once")
    assert code == 0 and out.startswith("quick: not begun: ")
    (tmp_path / "mine.yaml").write_text("name: other\nplugins: [gone]\n")
    code, out, _ = transect("watch", tmp_path / "mine.yaml", "--results", tmp_path / "none", "--once")
    assert code == 0 and out.startswith("other: not begun: ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("quik",), "did you mean 'quick'"),
        (("../made-up",), "unknown study"),
        (("{folder}/empty",), "no results of a study there"),
        (("{folder}/gone.yaml",), "gone.yaml"),
        (("made-up", "--every", "0"), "expected seconds, more than 0"),
        (("made-up", "--system", "laptop"), "was planned for the system"),
    ],
)
def test_what_cannot_be_watched_is_named(
    paths: StudyPaths, tmp_path: Path, transect: Any, given: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    plan = json.loads(paths.plan.read_text()) | {"system": "/somewhere/mine.yaml"}
    paths.plan.write_text(json.dumps(plan))
    words = [word.format(folder=tmp_path) for word in given]
    code, out, err = transect("watch", *words, "--results", paths.results)
    assert code == 2 and message in err and not out


@pytest.mark.env
def test_it_imports_neither_snakemake_nor_pandas(paths: StudyPaths) -> None:
    code = (
        "import sys; from pathlib import Path; from transect.cli.watch import watch;"
        f"watch({str(paths.folder)!r}, Path('results'), None, True, 5, False);"
        "print([name for name in ('snakemake', 'pandas', 'altair', 'duckdb', 'scipy') if name in sys.modules])"
    )
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
