"""`transect launch`: who reads standard input, and how long ranks have to end in."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from launching import LAUNCH, MPI, TORCH, environment, launch
from transect.launch import Request
from transect.launch.launchers.srun import Srun

pytestmark = pytest.mark.env

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
        assert [one for one in argv if one.startswith("--input")] == [option]


@pytest.mark.parametrize("arguments", [[*TORCH], [*MPI]])
def test_without_an_open_standard_input_ranks_run(base_python, arguments):
    code = "import sys; print(sys.stdin.read().split())"
    done = launch(*arguments, "--no-label", "--", base_python, "-c", code, preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@pytest.mark.parametrize("arguments", [[*TORCH], [*MPI]])
def test_a_terminal_is_read_by_rank_0(base_python, arguments):
    controller, terminal = pty.openpty()
    os.write(controller, b"typed\n\x04")
    code = "import sys; print(sys.stdin.read().split())"
    # Its terminal, as that of a command that a shell has put into the foreground.
    foreground = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", foreground, *LAUNCH, *arguments, "--no-label", "--"]
    done = subprocess.run(
        [*command, base_python, "-c", code],
        env=environment(),
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=600,
        start_new_session=True,
    )
    os.close(controller)
    os.close(terminal)
    assert (done.returncode, done.stdout) == (0, "['typed']\n"), done.stderr


# Notes how long the ranks that are left have, and ends them at once.
NOTED = """
import sys
from transect.launch import supervise
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
