"""Processes under limits, locks, progress, code hashes, environments."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.domain.paths import PACKAGE, StudyPaths
from transect.engine import run_cell
from transect.engine.payload import DiskFull, remove
from transect.engine.progress import Journal, start_progress
from transect.launch import processes
from transect.launch.processes import run
from transect.planning.code_hash import closure

SLEEP = "import time; time.sleep(6000)"
DEAF = (
    "import os, signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    f"subprocess.Popen([sys.executable, '-c', '{SLEEP}'], start_new_session=True); time.sleep(6000)"
)
CASES = {
    "all well": (["pass", "pass"], {}, ("exited", 0)),
    "exit code of the failing one": ([SLEEP, "raise SystemExit(7)"], {}, ("exited", 7)),
    "signal": (["import os; os.kill(os.getpid(), 9)"], {}, ("signalled", 9)),
    "time limit": ([SLEEP], {"seconds": 0.5}, ("timeout", 0)),
    "memory limit": ([f"x = bytearray(300 * 2**20); {SLEEP}"], {"memory_bytes": 200 * 2**20}, ("out-of-memory", 0)),
    "a child that ignores SIGTERM and changes its session": ([DEAF], {"seconds": 1.0}, ("timeout", 0)),
}


@pytest.mark.env
@pytest.mark.parametrize("name", CASES)
def test_processes_end_as_said_and_leave_none_behind(tmp_path, monkeypatch, name):
    monkeypatch.setattr(processes, "_GRACE_S", 2.0)
    codes, limits, expected = CASES[name]
    mark = f"{tmp_path}-{name}"
    commands = [([sys.executable, "-c", code], {"TRANSECT_TEST": mark}) for code in codes]
    outcome = run(commands, log=tmp_path / "log", cwd=tmp_path, **{"seconds": 600} | limits)
    assert (outcome.end, outcome.code) == expected
    assert list(processes.marked("TRANSECT_TEST", mark)) == []


TREE = "import subprocess, sys; x = bytearray(60 * 2**20); "
TREE += "sys.argv[1] == '0' or subprocess.run([sys.executable, *sys.orig_argv[1:-1], "
TREE += "str(int(sys.argv[1]) - 1)]); open(f'there-{sys.argv[1]}', 'w'); "
TREE += "import time; time.sleep(6000 if sys.argv[1] == '0' else 0)"


@pytest.mark.env
@pytest.mark.parametrize("kernel", [True, False])
def test_memory_of_all_that_a_payload_started_counts(tmp_path, monkeypatch, kernel):
    monkeypatch.setattr(processes, "_KERNEL_LISTS_CHILDREN", kernel)
    root = subprocess.Popen([sys.executable, "-c", TREE, "2"], cwd=tmp_path)
    try:
        while not (tmp_path / "there-0").exists():
            assert root.poll() is None
        assert 3 * 60 * 2**20 < processes.resident_bytes(processes.descendants([root.pid])) < 3 * 100 * 2**20
    finally:
        processes.end_all([root.pid], "none", 2.0)
        root.wait()


@pytest.mark.env
def test_a_process_that_died_by_a_signal_comes_before_those_that_failed_without_it(tmp_path, monkeypatch):
    class Ended(processes._Ends):
        """Both have ended before anybody looks."""

        def __init__(self, children):
            super().__init__(children)
            for child in children:
                os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    monkeypatch.setattr(processes, "_Ends", Ended)
    name = tmp_path / "pid"
    killed = f"import os; open({str(name)!r}, 'w').write(str(os.getpid())); os.kill(os.getpid(), 9)"
    codes = ("raise SystemExit(1)", killed, "raise SystemExit(2)")
    opened = len(list(Path("/proc/self/fd").iterdir()))
    outcome = run(
        [([sys.executable, "-c", code], {}) for code in codes], log=tmp_path / "log", cwd=tmp_path, seconds=600
    )
    assert (outcome.end, outcome.code, outcome.pid) == ("signalled", 9, int(name.read_text()))
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_progress_line_counts_and_estimates(tmp_path):
    paths = StudyPaths(results=tmp_path, study="s")
    start_progress(paths, {"train": 4, "infer": 10})
    journal = Journal(paths)
    assert journal.read() == []
    rows = [
        {"stage": "train", "cell": "a", "status": "ok", "seconds": "2.0"},
        {"stage": "train", "cell": "b", "status": "failed", "seconds": "4.0"},
    ]
    with paths.progress.open("a") as stream:
        stream.write(json.dumps(rows[0]) + "\n" + json.dumps(rows[1])[:20])
        stream.flush()
        # A line that is being written is left for the next look.
        assert journal.read() == rows[:1]
        stream.write(json.dumps(rows[1])[20:] + "\n{half\n")
    assert journal.read() == rows[1:]
    assert journal.read() == []
    # Two training cells at 3 s, and ten unknown ones at the mean of all known.
    expected = "train 2/4 · all 2/14 done, 1 failed, 0 skipped · about 0:36 left"
    assert journal.line() == expected


def test_closure_holds_what_a_stage_imports_and_no_more():
    worker = {path.relative_to(PACKAGE).as_posix() for path in closure(PACKAGE / "payloads/train.py")}
    assert {"domain/cell.py", "training/strategies/__init__.py"} <= worker
    assert not any(name.startswith(("hpc/", "report/", "planning/")) for name in worker)
    assert "training/strategies/mpi_allreduce.py" not in worker
    strategy = closure(PACKAGE / "training/strategies/mpi_allreduce.py")
    assert PACKAGE / "training/strategies/_mpi.py" in strategy


def test_a_file_that_nfs_keeps_for_a_straggler_does_not_keep_its_cell_from_running(tmp_path, monkeypatch):
    unlink = Path.unlink

    def busy(path, **more):
        if path.name.startswith(".nfs"):
            raise OSError(errno.EBUSY, "Device or resource busy")
        unlink(path, **more)

    monkeypatch.setattr(Path, "unlink", busy)
    for name in (".nfs0001", "record.json"):
        (tmp_path / name).touch()
    remove([*tmp_path.iterdir()])
    assert [path.name for path in tmp_path.iterdir()] == [".nfs0001"]


def test_a_full_disk_is_no_result_of_the_cell_whose_turn_it_was(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    # As where the attempt is noted, before there is any payload.
    monkeypatch.setattr(run_cell, "changed_input", full)
    with pytest.raises(DiskFull, match="No space left"):
        run_cell._run(SimpleNamespace(folder=tmp_path), None, None, ("", []), None)
