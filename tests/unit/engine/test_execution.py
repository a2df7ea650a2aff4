"""Processes under limits, locks, progress, code hashes, environments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from checkouts import ROOT
from transect.domain.paths import StudyPaths
from transect.engine.progress import Journal, start_progress
from transect.launch import processes
from transect.launch.processes import run
from transect.planning.code_hash import PACKAGE, closure


def python(code: str) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-c", code], {}


CASES = {
    "all well": ([python("pass"), python("pass")], {}, ("exited", 0)),
    "exit code of the failing one": (
        [python("import time; time.sleep(6000)"), python("raise SystemExit(7)")],
        {},
        ("exited", 7),
    ),
    "signal": ([python("import os; os.kill(os.getpid(), 9)")], {}, ("signalled", 9)),
    "time limit": ([python("import time; time.sleep(6000)")], {"seconds": 0.5}, ("timeout", 0)),
    "memory limit": (
        [python("x = bytearray(300 * 2**20); import time; time.sleep(6000)")],
        {"memory_bytes": 200 * 2**20},
        ("out-of-memory", 0),
    ),
    "a child that ignores SIGTERM and changes its session": (
        [
            python(
                "import os, signal, subprocess, sys, time;"
                "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
                "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(6000)'],"
                " start_new_session=True);"
                "time.sleep(6000)"
            )
        ],
        {"seconds": 1.0},
        ("timeout", 0),
    ),
}


@pytest.mark.env
@pytest.mark.parametrize("name", CASES)
def test_processes_end_as_said_and_leave_none_behind(tmp_path, monkeypatch, name):
    monkeypatch.setattr(processes, "_GRACE_S", 2.0)
    commands, limits, expected = CASES[name]
    mark = f"{tmp_path}-{name}"
    commands = [(argv, {"TRANSECT_TEST": mark}) for argv, _ in commands]
    outcome = run(
        commands,
        log=tmp_path / "log",
        cwd=tmp_path,
        seconds=limits.get("seconds", 600),
        memory_bytes=limits.get("memory_bytes"),
    )
    assert (outcome.end, outcome.code) == expected
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TRANSECT_TEST") == mark:
                left.append(process)
        except (psutil.Error, OSError):
            continue
    assert left == []


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
        assert 3 * 60 * 2**20 < processes._resident([root.pid]) < 3 * 100 * 2**20
    finally:
        processes.end_all([root.pid], "none", 2.0)
        root.wait()


@pytest.mark.env
@pytest.mark.parametrize("told", [True, False])
def test_the_end_of_each_rank_is_noticed(tmp_path, monkeypatch, told):
    if not told:
        # As before Linux 5.3.
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    # One ends after the other: neither is waited for until the next look at memory.
    monkeypatch.setattr(processes, "_FIRST_POLL_S", 6000.0)
    commands = [python("pass"), python("import time; time.sleep(0.3)")]
    outcome = run(commands, log=tmp_path / "log", cwd=tmp_path, seconds=6000)
    assert (outcome.end, outcome.code) == ("exited", 0)
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


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
    commands = [python("raise SystemExit(1)"), python(killed), python("raise SystemExit(2)")]
    outcome = run(commands, log=tmp_path / "log", cwd=tmp_path, seconds=600)
    assert (outcome.end, outcome.code, outcome.pid) == ("signalled", 9, int(name.read_text()))


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
        stream.write(json.dumps(rows[1])[20:] + "\n")
    assert journal.read() == rows[1:]
    assert journal.read() == []
    # Two training cells at 3 s, and ten unknown ones at the mean of all known.
    told = "train 2/4 · all 2/14 done, 1 failed, 0 skipped · about 0:36 left"
    assert journal.line() == told


def test_no_journal_or_a_broken_line_is_no_fault(tmp_path):
    paths = StudyPaths(results=tmp_path, study="s")
    assert Journal(paths).read() == []
    start_progress(paths, {"train": 1})
    with paths.progress.open("a") as stream:
        stream.write("{half\n")
    journal = Journal(paths)
    assert journal.read() == [] and journal.todo == {"train": 1}


def test_closure_holds_what_a_stage_imports_and_no_more():
    worker = {path.relative_to(PACKAGE).as_posix() for path in closure(PACKAGE / "payloads/train.py")}
    assert {"domain/cell.py", "training/strategies/__init__.py"} <= worker
    assert not any(name.startswith(("hpc/", "report/", "planning/")) for name in worker)
    assert "training/strategies/mpi_allreduce.py" not in worker
    strategy = closure(PACKAGE / "training/strategies/mpi_allreduce.py")
    assert PACKAGE / "training/strategies/_mpi.py" in strategy


def test_paths_stay_below_the_study():
    paths = StudyPaths(results=ROOT / "results", study="quick")
    for path in (paths.record("train", "c~12345678"), paths.spec("train", "c"), paths.report):
        assert paths.folder in path.parents
