"""A rank's parent process: it labels output, runs services, forwards signals and reports the exit.

Standard library only, Python 3.8 or later: rank.py loads this file beside it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
# Writes of this many bytes to a pipe are not mixed with those of other ranks.
_WHOLE = 4096
_MAX_LENGTH = 65536
# Bounds, not waits: what they are for takes a second, and minutes beside busy neighbours.
_SERVICES_END_S = 300.0
_SERVICE_STARTS_S = 600.0
_KILL_S = 30.0


# Loaded here: between fork and exec nothing should take a lock.
_LIBC = ctypes.CDLL(None)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send `number` to this process when its parent dies (Linux)."""
    _LIBC.prctl(1, int(number), 0, 0, 0)  # PR_SET_PDEATHSIG


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def copy_lines(source: int, target: int, prefix: bytes, end: bytes = b"") -> None:
    """Copy `source` to `target`, each line after `prefix`, until its end or the bytes `end`.

    Bytes stay as they are. A last line without an end gets one, and so does one of 64 KiB.
    """
    partial = b""
    while True:
        try:
            piece = os.read(source, _MAX_LENGTH)
        except OSError:
            piece = b""
        if end and end in partial + piece:
            partial, piece = (partial + piece).partition(end)[0], b""
        lines = (partial + piece).split(b"\n")
        partial = lines.pop()
        if partial and (not piece or len(partial) >= _MAX_LENGTH):
            lines.append(partial)
            partial = b""
        pending = b""
        # Where nobody reads any more, go on reading, so that the rank does not stop.
        with contextlib.suppress(OSError):
            for line in lines:
                whole = prefix + line + b"\n"
                if len(pending) + len(whole) > _WHOLE:
                    _write(target, pending)
                    pending = b""
                pending += whole
            _write(target, pending)
        if not piece:
            return


class Child:
    """The rank's command and its services.

    `forwards`: signals come to this process alone. Slurm sends them to all processes of a step.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], *, rank: str, label: bool, forwards: bool
    ) -> None:
        self.command, self.environ = list(command), dict(environ)
        self.rank, self.label, self.forwards = rank, label, forwards
        self.ended_from_outside = False
        self.copiers: list[tuple[threading.Thread, int]] = []
        # Ends a rank's output where processes that it left behind hold the pipe open.
        self.end = os.urandom(16)
        self.pids: dict[int, str] = {}
        self.pending: list[int] = []
        self.main = 0

    def say(self, text: str) -> None:
        """Write a line of our own."""
        line = f"[{self.rank}] transect: {text}\n"
        _write(2, line.encode())

    def start(self, command: Sequence[str], environ: Mapping[str, str], label: str, *, reads: bool = False) -> int:
        """Start a process, in a group of its own when a signal is to come through us alone; `reads` our input."""

        def prepare() -> None:
            if self.forwards:
                os.setpgid(0, 0)
            die_with_parent()

        pipes = [os.pipe(), os.pipe()] if self.label else []
        process = subprocess.Popen(
            list(command),
            env=dict(environ),
            stdin=None if reads else subprocess.DEVNULL,
            stdout=pipes[0][1] if pipes else None,
            stderr=pipes[1][1] if pipes else None,
            preexec_fn=prepare,
            # MPICH's ranks speak with mpiexec through an open descriptor.
            close_fds=False,
        )
        for target, (source, sink) in enumerate(pipes, start=1):
            args = (source, target, f"[{label}] ".encode(), self.end)
            copier = threading.Thread(target=copy_lines, args=args, daemon=True)
            copier.start()
            self.copiers.append((copier, sink))
        # Popen must not wait for it too.
        process.returncode = 0
        return process.pid

    def forward(self, number: int, _: Any) -> None:
        """Pass a signal on to the command."""
        self.ended_from_outside |= signal.Signals(number).name in _ENDING
        if not self.forwards:
            return
        if self.main:
            _signal(self.main, number)
        else:
            self.pending.append(number)

    def run(self, services: Sequence[dict[str, Any]], waits: Sequence[str], node: int) -> int:
        """Start services, wait until they answer, run the command; return its exit code."""
        for name in FORWARDED:
            signal.signal(getattr(signal, name), self.forward)
        try:
            # A service measures nothing, and so takes no turns (`transect.measure.turns`), also where it runs the ranks' command.
            environ = {name: value for name, value in self.environ.items() if name != "TRANSECT_TURNS"}
            for service in services:
                label = f"{service['name']} {node}" if service["on"] == "every-node" else service["name"]
                argv = service["argv"] or self.command
                pid = self.start(argv, {**environ, **service["variables"]}, label)
                self.pids[pid] = label if service["ends"] else ""
            for place in waits:
                self.wait_for(place)
            self.main = self.start(self.command, self.environ, self.rank, reads=True)
        except OSError as error:
            self.say(f"cannot start {self.command[0]!r}: {error}")
            self.end_services(0)
            return 127 if isinstance(error, FileNotFoundError) else 126
        for number in self.pending:
            _signal(self.main, number)
        code = self.wait()
        self.end_services(0 if code else _SERVICES_END_S)
        for copier, sink in self.copiers:
            # In the pipe it comes after all that the ended processes wrote.
            _write(sink, self.end)
            copier.join()
        return code

    def wait_for(self, place: str) -> None:
        """Wait until host:port answers. Raises ConnectionError after ten minutes."""
        host, _, port = place.rpartition(":")
        end = time.monotonic() + _SERVICE_STARTS_S
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=60).close()
                return
            except OSError as error:
                ended = [pid for pid in self.pids if os.waitpid(pid, os.WNOHANG)[0]]
                if time.monotonic() > end or self.ended_from_outside or ended:
                    raise ConnectionError(f"no service answers at {place}: {error}") from None
                time.sleep(0.05)

    def wait(self) -> int:
        """Wait for the command; end it when a service that it needs fails."""
        failed = 0
        while True:
            pid, status = os.wait()
            code = _exit_code(status)
            if pid == self.main:
                break
            name = self.pids.pop(pid, "")
            if code and name:
                failed = failed or code
                self.say(f"{name} on {socket.gethostname()} exited with code {code}")
                _signal(self.main, signal.SIGTERM)
        code = failed or code
        if code and not failed and not self.ended_from_outside:
            # transect.launch.supervise reads this: of all ranks, the first one's code counts.
            how = f"exited with code {code}"
            if os.WIFSIGNALED(status):
                how = f"was ended by signal {code - 128} ({signal.Signals(code - 128).name})"
            self.say(f"rank {self.rank} on {socket.gethostname()} {how}")
        return code

    def end_services(self, patience_s: float) -> None:
        """Let services end that do so by themselves; end the others, and those that linger."""
        for pid, name in self.pids.items():
            if not name or not patience_s:
                _signal(pid, signal.SIGTERM)
        for limit, number in ((patience_s, signal.SIGTERM), (_KILL_S, signal.SIGKILL), (_KILL_S, 0)):
            end = time.monotonic() + limit
            while self.pids and time.monotonic() < end:
                try:
                    pid, _ = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    return
                self.pids.pop(pid, None)
                if not pid:
                    time.sleep(0.02)
            for pid in self.pids:
                _signal(pid, number)


def _exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
