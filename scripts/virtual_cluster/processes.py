"""Processes known by number and start time, and commands run in their namespaces."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .errors import BadInput, ClusterError, NotPossible
from .kernel import ALL_BUT_PID, NEWPID, setns

# Daemons get no variable of whoever started the cluster: a SLURM_CONF or LD_LIBRARY_PATH of
# theirs would reach every job.
DAEMON_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Poll until the condition holds; False when it did not within the time."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _start_ticks(pid: int, proc: Path) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it is gone or dead."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def gone(pid: int) -> bool:
    """Whether the caller's /proc has no such process, or a dead one that nobody collected yet."""
    return _start_ticks(pid, Path("/proc")) is None


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be mistaken for a later one of the same number."""

    pid: int
    start_ticks: int

    @classmethod
    def myself(cls, proc: Path) -> Process:
        """Return the caller as the owner of that /proc numbers it, from any namespace below."""
        pid = int((proc / "self").readlink().name)
        ticks = _start_ticks(pid, proc)
        assert ticks is not None
        return cls(pid, ticks)

    @classmethod
    def load(cls, path: Path) -> Process | None:
        """Read what `save` wrote; None when there is no such file."""
        try:
            return cls(**json.loads(path.read_text()))
        except FileNotFoundError:
            return None

    def save(self, path: Path) -> None:
        """Write this process into a file, at once or not at all."""
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.rename(path)

    def alive(self) -> bool:
        """Whether it still runs."""
        return _start_ticks(self.pid, Path("/proc")) == self.start_ticks

    def kill(self, timeout_s: float = 300) -> None:
        """Send SIGKILL if it is still this process, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)
        if not wait_until(lambda: not self.alive(), timeout_s):
            raise ClusterError(f"process {self.pid} did not end within {timeout_s:g} s of SIGKILL")
        # Dead, it may stay listed as defunct for a second, until the machine's init collects it.


@contextlib.contextmanager
def children_inside(init: Process) -> Iterator[int]:
    """Have the caller's next children born in the PID namespace of this init.

    Yields a pidfd of it, with which a child enters the other namespaces (`enter`).
    """
    try:
        descriptor = os.pidfd_open(init.pid)
    except ProcessLookupError:
        raise ClusterError(f"process {init.pid} is gone: the node or cluster died") from None
    mine = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        if not init.alive():
            raise ClusterError(f"process {init.pid} is gone: the node or cluster died")
        setns(descriptor, NEWPID)
        yield descriptor
    finally:
        setns(mine, NEWPID)
        os.close(mine)
        os.close(descriptor)


def enter(descriptor: int, folder: str = "/") -> None:
    """In a child: enter all namespaces but the PID one, in which it was born, and a folder."""
    setns(descriptor, ALL_BUT_PID)
    # Entering a mount namespace moves a process to its root.
    with contextlib.suppress(OSError):
        os.chdir(folder)


def run(init: Process, argv: Sequence[str], timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a program in the namespaces of this init and return its output."""
    with children_inside(init) as descriptor:
        return subprocess.run(
            argv,
            preexec_fn=functools.partial(enter, descriptor),
            env=DAEMON_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )


def _raised(told: dict[str, str]) -> Exception:
    """Make the exception again that a child met: ours by its kind, any other as a ClusterError."""
    known = {kind.__name__: kind for kind in (BadInput, ClusterError, NotPossible)}
    if told["kind"] in known:
        return known[told["kind"]](told["text"])
    return ClusterError(f"{told['kind']}: {told['text']}")


def call(init: Process, function: Callable[[], Any]) -> None:
    """Call a function in a child in the namespaces of this init; its exception is raised here."""
    read_end, write_end = os.pipe()
    with children_inside(init) as descriptor:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                enter(descriptor)
                function()
                code = 0
            except Exception as error:
                told = {"kind": type(error).__name__, "text": str(error)[:20_000]}
                os.write(write_end, json.dumps(told).encode())
            finally:
                os._exit(code)
    os.close(write_end)
    _, status = os.waitpid(child, 0)
    # Only after the child's end: what it leaves running may hold the pipe open.
    os.set_blocking(read_end, False)
    try:
        said = os.read(read_end, 65_536)
    except BlockingIOError:
        said = b""
    os.close(read_end)
    if said:
        raise _raised(json.loads(said))
    if status != 0:
        raise ClusterError(f"a helper process ended with the wait status {status}")
