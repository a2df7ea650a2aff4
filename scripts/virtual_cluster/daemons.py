"""Starts and restarts munged, slurmctld and slurmd the way an administrator does.

All functions run inside: those on slurmd in the node's namespaces, the others on the login node.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import ClusterError
from .options import Node, Options
from .processes import DAEMON_ENVIRONMENT, gone, wait_until
from .state import Folder

IDLE_TIMEOUT_S = 600
RESTART_TIMEOUT_S = 300


def daemon(argv: Sequence[str], log: Path, **variables: str) -> None:
    """Start a program that goes to the background by itself; raises ClusterError with its words."""
    with log.open("a") as output:
        code = subprocess.run(
            argv, env=DAEMON_ENVIRONMENT | variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ).returncode
    if code != 0:
        raise ClusterError(f"{argv[0]} ended with {code}: {last_line(log)}")


def last_line(log: Path) -> str:
    """Return the end of a log for an error message."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else f"nothing in {log}"


def start_munged(folder: Folder) -> None:
    """Start one munged with a new key. All nodes use its socket: they share the file system."""
    key = folder.etc / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    argv = [
        "munged",
        "--force",  # it warns of a state folder under /tmp, and would end
        "--num-threads=4",
        f"--key-file={key}",
        f"--socket={folder.munge_socket}",
        f"--pid-file={folder.run}/munged.pid",
        f"--log-file={folder.log}/munged.log",
        f"--seed-file={folder.run}/munged.seed",
    ]
    daemon(argv, folder.log / "munged.out")


def start_slurmctld(folder: Folder, *, first: bool = False) -> None:
    """Start slurmctld; it forgets what it saved when it is the first."""
    daemon(["slurmctld", *(["-c"] if first else [])], folder.log / "slurmctld.out")


def start_slurmd(folder: Folder, node: Node) -> None:
    """Start slurmd on the node that the caller is on."""
    daemon(["slurmd"], folder.log / f"slurmd-{node.name}.out")


def _stop(pid_file: Path, program: str) -> None:
    try:
        pid = int(pid_file.read_text())
        # A number may be someone else's by now.
        ours = Path(f"/proc/{pid}/comm").read_text().strip() == program
    except (FileNotFoundError, ValueError):
        return
    if not ours:
        return
    os.kill(pid, signal.SIGTERM)
    if not wait_until(lambda: gone(pid), RESTART_TIMEOUT_S):
        raise ClusterError(f"{program} did not end within {RESTART_TIMEOUT_S} s of SIGTERM")


def restart_slurmctld(folder: Folder) -> None:
    """End slurmctld, start it again, and wait until it answers. Jobs go on."""
    _stop(folder.run / "slurmctld.pid", "slurmctld")
    start_slurmctld(folder)
    if not wait_until(lambda: _slurm("scontrol", "ping").returncode == 0, RESTART_TIMEOUT_S):
        raise ClusterError(f"slurmctld does not answer: {last_line(folder.log / 'slurmctld.log')}")


def restart_slurmd(folder: Folder, node: Node) -> None:
    """End slurmd and start it again; job steps have processes of their own and go on."""
    _stop(folder.run / f"slurmd-{node.name}.pid", "slurmd")
    start_slurmd(folder, node)


def _slurm(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, env=DAEMON_ENVIRONMENT, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", "no answer")


def node_states() -> dict[str, str]:
    """Return each node's state in sinfo's long form, such as ``idle`` or ``down*``."""
    said = _slurm("sinfo", "-h", "-N", "-o", "%N %T").stdout.split()
    return dict(zip(said[::2], said[1::2], strict=True))


def wait_idle(folder: Folder, options: Options) -> None:
    """Wait until all nodes are idle; raises ClusterError naming one that is not."""
    names = [node.name for node in options.all_nodes]
    states: dict[str, str] = {}

    def idle() -> bool:
        states.update(node_states())
        return all(states.get(name) == "idle" for name in names)

    if wait_until(idle, IDLE_TIMEOUT_S):
        return
    name = next(name for name in names if states.get(name) != "idle")
    state = states.get(name, "unknown to slurmctld")
    log = folder.log / f"slurmd-{name}.log"
    raise ClusterError(f"node {name} is {state} after {IDLE_TIMEOUT_S} s: {last_line(log)}")
