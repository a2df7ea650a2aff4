"""Running ranks for a person or a batch script: output passes through, signals are passed on."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import psutil

from transect.domain.errors import MissingDependency
from transect.launch.orphans import guarded
from transect.launch.parent import die_with_parent
from transect.launch.processes import end_all

ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_PASSED_ON = ENDING | {signal.SIGUSR1, signal.SIGUSR2}
# What transect/launch/parent.py says of a rank that failed; and srun, of ranks without a parent.
_FAILED = re.compile(
    r"\[\d+\] transect: rank \d+ on \S+ (?:exited with code (\d+)|was ended by signal (\d+))"
    r"|srun: error: \S+: tasks? [\d,-]+: (?:Exited with exit code (\d+)|(.+))"
)
# A bound: mpiexec and srun need a second to end their ranks, and more beside busy neighbours.
_LAUNCHER_ENDS_S = 30.0
_BY_NAME = {signal.strsignal(number): int(number) for number in signal.valid_signals()}


def _reported(line: str) -> int:
    match = _FAILED.match(line)
    if match is None:
        return 0
    code, number, task_code, name = match.groups()
    number = number or _BY_NAME.get((name or "").removesuffix(" (core dumped)").strip()) or -128
    return int(code or task_code or 128 + int(number))


class _Listener(threading.Thread):
    """Passes on what the launcher writes to `sink`, and notes the code of the first rank that failed."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.source, self.sink = os.pipe()
        self.end = os.urandom(16).hex().encode()
        self.code = 0

    def run(self) -> None:
        with os.fdopen(self.source, "rb") as stream:
            for line in stream:
                text, over, _ = line.partition(self.end)
                self.code = self.code or _reported(text.decode(errors="replace"))
                with contextlib.suppress(OSError):
                    sys.stderr.buffer.write(text)
                    sys.stderr.buffer.flush()
                if over:
                    return

    def finish(self) -> None:
        """Wait until all is read that was written before; a process left behind may write on."""
        os.write(self.sink, self.end + b"\n")
        self.join()
        os.close(self.sink)


def _standard_input() -> int | None:
    """Return what the first process reads, as Popen takes it: ours, or nothing where it is closed.

    Nothing either in the background of a terminal: ranks have a session of their own, so the terminal would not keep
    one from reading what is meant for the shell.
    """
    try:
        os.fstat(0)
        ours = not os.isatty(0) or os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # closed
        ours = False
    return None if ours else subprocess.DEVNULL


class _Offer(threading.Thread):
    """Hands our standard input to rank 0 of this machine, which asks for it at a socket.

    Not by mpiexec, which copies it: that of Open MPI 5.0.8 to 5.0.11 repeats parts of more than
    64 KiB and never tells the end (https://github.com/openpmix/prrte/issues/2579).
    """

    def __init__(self, name: str, source: int | None) -> None:
        super().__init__(daemon=True)
        self._source = source
        self._socket = socket.socket(socket.AF_UNIX)
        # Linux's abstract names need no file.
        self._socket.bind("\0" + name)
        self._socket.listen()

    def run(self) -> None:
        while True:
            taker, _ = self._socket.accept()
            with taker:
                facts = taker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                if struct.unpack("3i", facts)[1] != os.getuid():
                    continue
                nothing = os.open(os.devnull, os.O_RDONLY)
                socket.send_fds(taker, [b"0"], [nothing if self._source else 0])
                os.close(nothing)
                return


def _is_rank(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return bool({"OMPI_COMM_WORLD_RANK", "PMI_RANK"} & process.environ().keys())
    return False


def signal_mpi_ranks(number: int, *, alone: bool = True) -> bool:
    """Send a signal to the ranks that mpiexec started here; return whether there were any.

    Open MPI's mpiexec answers SIGTERM by ending its ranks before they can save. `alone`: there are none
    on other hosts, which only mpiexec reaches; it passes on what does not end it.
    """
    if not alone and number not in ENDING:
        return False
    below = psutil.Process().children(recursive=True)
    ranks = {process.pid: process for process in below if _is_rank(process)}
    # What a rank has started has inherited its variables.
    heads = [process for process in ranks.values() if process.ppid() not in ranks]
    for process in heads:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
    return bool(heads)


def supervise(
    processes: list[tuple[list[str], dict[str, str]]],
    *,
    launcher: bool = False,
    signal_ranks: Callable[[int], bool] | None = None,
    grace_s: float = 30.0,
    stdin_at: str = "",
) -> int:
    """Start every (argv, variables), wait for all, end all as soon as one fails.

    Returns the exit code of the first rank that failed, 128 + number for a signal, or 0. `launcher`: the one process
    starts the ranks elsewhere, and its code may be another's: the first report of a rank on stderr counts.
    SIGINT, SIGTERM, SIGHUP (unless it is ignored), SIGUSR1 and SIGUSR2 are passed on, by `signal_ranks` when that
    returns true. After one of the first three, or the failure of another rank, the ranks have `grace_s` seconds, or
    until the second one, to end. The first process has our standard input; with `stdin_at` rank 0 asks for it at the
    socket of that name. When this process dies, the ranks die too. Raises MissingDependency when a program cannot be started. To be called in the main thread.
    """
    session = f"{os.getpid()}-{time.time_ns()}"
    waited = _PASSED_ON | {signal.SIGCHLD}
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        # As under `nohup`; a blocked signal would come although it is ignored.
        waited.discard(signal.SIGHUP)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)

    def prepare() -> None:
        # srun and mpiexec end their ranks on SIGTERM.
        die_with_parent(signal.SIGTERM if launcher else signal.SIGKILL)
        # In the background of a shell it is ignored, and so would be what we pass on.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    children: list[subprocess.Popen[bytes]] = []
    source = _standard_input()  # before a pipe of ours takes the number of a closed one
    listener = _Listener() if launcher else None
    if stdin_at:
        _Offer(stdin_at, source).start()
        source = subprocess.DEVNULL
    if listener is not None:
        listener.start()
    first, patience_s = 0, grace_s
    apart = contextlib.ExitStack()
    try:
        apart.enter_context(guarded(processes, session, launcher=launcher))
        for argv, variables in processes:
            try:
                child = subprocess.Popen(
                    argv,
                    env=os.environ | variables | {"TRANSECT_PAYLOAD": session},
                    stdin=subprocess.DEVNULL if children else source,
                    stderr=None if listener is None else listener.sink,
                    start_new_session=True,
                    preexec_fn=prepare,
                )
            except OSError as error:
                raise MissingDependency(f"cannot start {argv[0]!r}: {error}") from None
            children.append(child)
        first, patience_s = _wait(children, signal_ranks, waited, grace_s)
    finally:
        if any(child.poll() is None for child in children) or first:
            if launcher:
                # The ranks have had their time; what started them takes a second to end.
                patience_s = max(patience_s, _LAUNCHER_ENDS_S)
                if signal_ranks is not None:
                    signal_ranks(signal.SIGKILL)
            end_all([child.pid for child in children], session, patience_s)
        for child in children:
            child.wait()
        if listener is not None:
            listener.finish()
        apart.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return listener.code if first and listener is not None and listener.code else first


def _wait(
    children: list[subprocess.Popen[bytes]],
    signal_ranks: Callable[[int], bool] | None,
    waited: set[signal.Signals],
    grace_s: float,
) -> tuple[int, float]:
    """Return the first code that is not 0, or 0 when all have ended, and the seconds left to end in."""
    deadline: float | None = None
    while True:
        codes = [child.poll() for child in children]
        first = next((code if code > 0 else 128 - code for code in codes if code), 0)
        # Ranks that were asked to end may each take their time.
        if None not in codes or (first and deadline is None):
            return first, grace_s
        if deadline is not None and time.monotonic() > deadline:
            return first or 128 + signal.SIGTERM, 0.0
        received = signal.sigtimedwait(waited, 0.2)
        if received is None or received.si_signo == signal.SIGCHLD:
            continue
        if received.si_signo in ENDING:
            if deadline is not None:
                return first or 128 + received.si_signo, 0.0
            deadline = time.monotonic() + grace_s
        if signal_ranks is None or not signal_ranks(received.si_signo):
            for child in children:
                if child.poll() is None:
                    child.send_signal(received.si_signo)
