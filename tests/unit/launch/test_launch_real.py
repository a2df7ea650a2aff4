"""`transect launch` with real ranks: they meet, read, fail, get signals and leave nothing behind."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from launching import LAUNCH, MPI, TORCH, environment, launch
from transect.launch import Request
from transect.launch.launchers.srun import Srun

pytestmark = pytest.mark.env


ADD = "from mpi4py import MPI; c = MPI.COMM_WORLD; print('sum', c.allreduce(c.rank + 1))"


def test_two_mpi_ranks_meet(base_python):
    for label, head in (("--label", True), ("--no-label", False)):
        done = launch(*MPI, "--ranks-per-node", "2", label, "--", base_python, "-c", ADD)
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == (["[0] sum 3", "[1] sum 3"] if head else ["sum 3", "sum 3"])


SPAWN = """
import os, sys
from mpi4py import MPI
parent = MPI.Comm.Get_parent()
if parent != MPI.COMM_NULL:
    parent.send(MPI.COMM_WORLD.rank, dest=0)
    parent.Disconnect()
else:
    child = MPI.COMM_SELF.Spawn(sys.executable, args=["-c", os.environ["SPAWN"]], maxprocs=1)
    print("child", child.recv(source=0), flush=True)
    child.Disconnect()
"""


@pytest.mark.parametrize("options", [(), ("--no-bind",)])
def test_a_rank_spawns_another(base_python, options):
    # Open MPI has a slot for each core, and one goes to the child.
    if (os.cpu_count() or 1) < 2:
        pytest.skip("mpiexec has one slot here")
    done = launch(*MPI, *options, "--env", f"SPAWN={SPAWN}", "--", base_python, "-c", SPAWN)
    assert done.returncode == 0, done.stderr
    assert "child 0" in done.stdout


@pytest.mark.parametrize("label", ["--label", "--no-label"])
@pytest.mark.parametrize(("end", "code"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_one_rank_ends_all_and_gives_its_code(label, end, code):
    script = f'if [ "$RANK" = 1 ]; then {end}; fi; exec sleep 6000'
    done = launch(*TORCH, "--ranks-per-node", "3", label, "--", "sh", "-c", script)
    # The others were ended, not waited for: they outlast the bound of `launch`.
    assert done.returncode == code


LINES = "import subprocess, sys; left = subprocess.Popen(['sleep', '600']); print('x' * 60000); "
LINES += "open('left', 'w').write(str(left.pid)); "
LINES += "[print(i, file=sys.stderr) for i in range(20000)]; sys.exit(%d)"


@pytest.mark.parametrize("code", [0, 5])
@pytest.mark.parametrize("launcher", ["plain", "mpiexec"])
def test_all_that_a_rank_wrote_comes_though_what_it_left_holds_the_pipe(base_python, tmp_path, launcher, code):
    arguments = (*TORCH, "--launcher", launcher, "--", base_python, "-c", LINES % code)
    done = launch(*arguments, cwd=tmp_path)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
    assert done.returncode == code
    assert done.stdout == f"[0] {'x' * 60000}\n"
    lines = [line for line in done.stderr.splitlines() if line.removeprefix("[0] ").isdigit()]
    assert lines == [f"[0] {i}" for i in range(20000)]


HANDLER = """
import os, signal, sys, time
def told(number, _):
    os.write(1, signal.Signals(number).name.encode() + bytes([10]))
    if number == signal.SIGTERM:
        sys.exit(0)
for one in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(one, told)
open("pid-" + os.environ["RANK"], "w").write(str(os.getpid()))
while True:
    time.sleep(0.01)
"""


class Running:
    """`transect launch` with ranks that write down their process ids."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        code: str = HANDLER,
        python: str = sys.executable,
        ignored: tuple[signal.Signals, ...] = (),
    ) -> None:
        self.child = subprocess.Popen(
            [*LAUNCH, *TORCH, "--ranks-per-node", "2", *arguments, "--", python, "-c", code],
            env=environment(),
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: [signal.signal(number, signal.SIG_IGN) for number in ignored],
        )
        self.pids = []
        for number in range(2):
            path = folder / f"pid-{number}"
            while not (path.exists() and path.read_text()):
                assert self.child.poll() is None
                time.sleep(0.01)
            self.pids.append(int(path.read_text()))

    def alive(self) -> list[int]:
        psutil.wait_procs([psutil.Process(p) for p in self.pids if psutil.pid_exists(p)], 300)
        return [p for p in self.pids if psutil.pid_exists(p)]


@pytest.mark.parametrize("label", ["--label", "--no-label"])
def test_signals_reach_ranks(tmp_path, label):
    running = Running(tmp_path, label)
    running.child.send_signal(signal.SIGUSR1)
    lines = sorted(running.child.stdout.readline() for _ in range(2))
    running.child.terminate()
    out, _ = running.child.communicate(timeout=600)
    heads = ["[0] ", "[1] "] if label == "--label" else ["", ""]
    assert lines == [f"{head}SIGUSR1\n" for head in heads]
    assert sorted(out.splitlines()) == [f"{head}SIGTERM" for head in heads]
    # They ended by themselves, in order.
    assert running.child.returncode == 0 and not running.alive()


def test_signals_reach_ranks_of_mpiexec(tmp_path, base_python):
    running = Running(tmp_path, "--launcher", "mpiexec", python=base_python)
    running.child.send_signal(signal.SIGUSR1)
    lines = sorted(running.child.stdout.readline() for _ in range(2))
    running.child.terminate()
    out, _ = running.child.communicate(timeout=600)
    assert lines == ["[0] SIGUSR1\n", "[1] SIGUSR1\n"]
    # mpiexec itself would have ended them before they could say so.
    assert sorted(out.splitlines()) == ["[0] SIGTERM", "[1] SIGTERM"]
    assert running.child.returncode == 0 and not running.alive()


# A shell starts what it puts in the background with SIGINT ignored.
@pytest.mark.parametrize("ignored", [(), (signal.SIGINT,)], ids=["heard", "ignored"])
def test_an_interrupt_ends_ranks(tmp_path, ignored):
    running = Running(tmp_path, "--no-label", ignored=ignored)
    running.child.send_signal(signal.SIGINT)
    running.child.communicate(timeout=600)
    assert running.child.returncode == 130 and not running.alive()


def test_a_hang_up_that_nohup_has_ignored_ends_nothing(tmp_path):
    running = Running(tmp_path, ignored=(signal.SIGHUP,))
    running.child.send_signal(signal.SIGHUP)
    # Passed on after it, were it passed on.
    running.child.send_signal(signal.SIGUSR1)
    lines = sorted(running.child.stdout.readline() for _ in range(2))
    assert lines == ["[0] SIGUSR1\n", "[1] SIGUSR1\n"]
    running.child.terminate()
    running.child.communicate(timeout=600)
    assert running.child.returncode == 0 and not running.alive()


def test_a_code_is_told_where_the_end_of_children_was_ignored():
    ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    done = launch(*TORCH, "--", sys.executable, "-c", "raise SystemExit(7)", preexec_fn=ignore)
    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize("label", ["--label", "--no-label"])
def test_killed_launcher_leaves_no_orphans(tmp_path, label):
    running = Running(tmp_path, label)
    running.child.kill()
    running.child.communicate(timeout=600)
    assert not running.alive()


# As Open MPI's does now and then, when it is told to end.
LEAVES_RANKS = """#!/bin/sh
[ "$1" = --version ] && exit
shift 2
for rank in 0 1; do PMI_RANK=$rank PMI_SIZE=2 MPI_LOCALRANKID=$rank setsid "$@" & done
wait
"""


def test_killed_launcher_leaves_no_orphans_of_mpiexec(tmp_path, monkeypatch):
    (tmp_path / "mpiexec").write_text(LEAVES_RANKS)
    (tmp_path / "mpiexec").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    running = Running(tmp_path, "--launcher", "mpiexec")
    running.child.kill()
    running.child.communicate(timeout=600)
    assert not running.alive()


def test_dry_run_prints_a_script_that_runs(tmp_path):
    show = "import os, sys; e = os.environ; print(e['RANK'], e['WORLD_SIZE'], e['A'], sys.argv[1:])"
    options = (*TORCH, "--ranks-per-node", "2", "--env", "A=it's $HOME", "--threads", "3", "--dry-run")
    done = launch(*options, "--", sys.executable, "-c", show, "a  b", "'", "$x")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# torch ddp-gloo, rendezvous tcp, plain\n")
    for line in ("export MASTER_ADDR=127.0.0.1", "export OMP_NUM_THREADS=3", "export WORLD_SIZE=2"):
        assert line in done.stdout.splitlines()
    bare = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    again = subprocess.run(["bash"], input=done.stdout, env=bare, capture_output=True, text=True, timeout=600)
    tail = "2 it's $HOME ['a  b', \"'\", '$x']"
    assert sorted(again.stdout.splitlines()) == [f"[0] 0 {tail}", f"[1] 1 {tail}"], again.stderr


# Reads to the end, and says who read it.
READ = 'while read -r line; do echo "$line"; done; echo end'


@pytest.mark.parametrize("label", ["--label", "--no-label"])
def test_standard_input_reaches_rank_0_alone(label):
    done = launch(*TORCH, "--ranks-per-node", "3", label, "--", "sh", "-c", READ, input="a\nb\n")
    assert done.returncode == 0, done.stderr
    mark = (lambda r: f"[{r}] ") if label == "--label" else (lambda r: "")
    expected = [f"{mark(0)}a", f"{mark(0)}b", *(f"{mark(r)}end" for r in range(3))]
    assert sorted(done.stdout.splitlines()) == sorted(expected)


def test_standard_input_reaches_rank_0_through_mpiexec(base_python):
    code = "import os, sys; print(os.environ['OMPI_COMM_WORLD_RANK'], sys.stdin.read().split())"
    done = launch(*MPI, "--ranks-per-node", "2", "--no-label", "--", base_python, "-c", code, input="a\nb\n")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 ['a', 'b']", "1 []"]


def test_standard_input_reaches_rank_0_through_srun(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n1")
    for name, option in (("mine", "--input=0"), ("", "--input=none")):
        ((argv, _),) = Srun().processes(Request(command=["true"], rendezvous="mpi", stdin_at=name))
        assert [word for word in argv if word.startswith("--input")] == [option]


# A shell that gives its terminal to a command, or goes on with it itself.
SHELL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if sys.argv[1] == "background":
    os.setpgid(0, 0) if (pid := os.fork()) == 0 else sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("arguments", [[*TORCH], [*MPI]])
@pytest.mark.parametrize(("place", "read"), [("foreground", "['typed']\n"), ("background", "[]\n")])
def test_a_terminal_is_read_by_rank_0_in_the_foreground_alone(base_python, arguments, place, read):
    controller, terminal = pty.openpty()
    os.write(controller, b"typed\n\x04")
    code = "import sys; print(sys.stdin.read().split())"
    command = [sys.executable, "-c", SHELL, place, *LAUNCH, *arguments, "--no-label", "--", base_python, "-c", code]
    done = subprocess.run(
        command, env=environment(), stdin=terminal, capture_output=True, text=True, timeout=600, start_new_session=True
    )
    os.close(controller)
    os.close(terminal)
    assert (done.returncode, done.stdout) == (0, read), done.stderr


@pytest.mark.parametrize("arguments", [[*TORCH], [*MPI]])
def test_without_an_open_standard_input_ranks_run(base_python, arguments):
    code = "import sys; print(sys.stdin.read().split())"
    done = launch(*arguments, "--no-label", "--", base_python, "-c", code, preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


# Notes how long the ranks that are left have, and ends them at once.
NOTED = """
import signal, sys
from transect.launch import supervise
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run under nohup
real = supervise.end_all
def end_all(roots, session, grace_s):
    print(grace_s)
    real(roots, session, 0)
supervise.end_all = end_all
print(supervise.supervise([(["sh", "-c", one], {}) for one in sys.argv[2:]], grace_s=float(sys.argv[1])))
"""
DEAF = "trap '' TERM HUP; "
STAY = "exec sleep 6000"
ENDS = {
    # Asked to end, they had their time already: none is left.
    "after a signal": (["0.1", f"{DEAF}kill -TERM $PPID; {STAY}"], ["0.0", "143"]),
    "after a second one": (["6000", f"{DEAF}kill -HUP $PPID; kill -TERM $PPID; {STAY}"], ["0.0", "143"]),
    "after another one failed": (["17", f"{DEAF}{STAY}", "exit 3"], ["17.0", "3"]),
}


@pytest.mark.parametrize("name", ENDS)
def test_ranks_have_the_time_that_was_given_and_no_more(name):
    arguments, expected = ENDS[name]
    done = subprocess.run(
        [sys.executable, "-c", NOTED, *arguments], env=environment(), capture_output=True, text=True, timeout=600
    )
    assert done.stdout.split() == expected, done.stderr
