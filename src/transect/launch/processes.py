"""Running a payload's processes under a time and a memory limit, leaving none behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal

import psutil

from transect.domain.errors import Interruption
from transect.domain.owner import is_abandoned

# What every process of a payload has in its environment.
MARK = "TRANSECT_PAYLOAD"
# Between two looks at ends where the kernel cannot tell of them (before Linux 5.3).
_POLL_S = 0.005
_MEMORY_POLL_S = 0.2
# Between two searches for processes that are no descendants: some container programs start theirs apart.
_SEARCH_S = 2.0
# The first look: before, a payload holds nothing worth a look.
_FIRST_POLL_S = 0.05
# When `lost` is asked first, and again: rarely, for it takes a hundredth of a second from what is measured.
_FIRST_QUESTION_S = 30.0
_QUESTIONS_S = 60.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Bounds: srun and mpiexec need a second to end their ranks, and more beside busy neighbours.
_GRACE_S = 30.0
_KILL_S = 60.0

# CONFIG_PROC_CHILDREN
_KERNEL_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()

End = Literal["exited", "signalled", "timeout", "out-of-memory", "lost"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How the processes ended. `code` is a failing one's exit code, or rather one's signal."""

    end: End
    code: int
    seconds: float
    peak_bytes: int
    # CLOCK_MONOTONIC of this machine before the first process was started; None: not known.
    started_ns: int | None = None
    # Of the process whose `code` it is; None: all ended well.
    pid: int | None = None
    # Of one that is lost: what became of it.
    why: str = ""


def descendants(roots: list[int]) -> list[int]:
    """Return `roots` and all that they have started, as the kernel lists children, where it has such lists."""
    descendants, unseen = [], list(roots)
    while unseen:
        pid = unseen.pop()
        try:
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 names are enough
        except OSError:  # it has ended
            continue
        descendants.append(pid)
        if not _KERNEL_LISTS_CHILDREN:
            with contextlib.suppress(psutil.Error):
                descendants += [process.pid for process in psutil.Process(pid).children(recursive=True)]
            continue
        for thread in threads:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                children = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                unseen += [int(child) for child in children.split()]
    return descendants


def marked_pids(name: str, value: str) -> list[int]:
    """Return the other processes that have a mark in their environment. Slow: it reads all."""
    mark = f"{name}={value}".encode()
    found = []
    for pid in os.listdir("/proc"):  # noqa: PTH208 names are enough
        if pid.isdigit() and int(pid) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found.append(int(pid))
    return found


def _processes(pids: Iterable[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(pid)


def marked(name: str, value: str) -> Iterator[psutil.Process]:
    """Return the other processes that have `name=value` in their environment."""
    return _processes(marked_pids(name, value))


def resident_bytes(pids: Iterable[int]) -> int:
    """Return what processes hold. Quick, for it runs beside what is measured."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return total


def end_processes(find: Callable[[], Iterable[psutil.Process]], grace_s: float) -> int:
    """Ask nicely, wait at most `grace_s`, then end what `find` still finds; return how many it found first."""
    count = 0
    for number, patience in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILL_S)):
        found = list(find())
        count = count or len(found)
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
                # Who is stopped hears nothing else.
                process.resume()
        psutil.wait_procs(found, timeout=patience)
    return count


def end_all(roots: list[int], session: str, grace_s: float) -> None:
    """End every process of a payload: `roots` with their descendants, and what has the payload's mark.

    That is TRANSECT_PAYLOAD=session in the environment, of those too that changed session or parent.
    """

    heads = list(_processes(roots))

    def family() -> Iterator[psutil.Process]:
        # A number may be another one's by now.
        ours = [head.pid for head in heads if head.is_running()]
        return _processes({*descendants(ours), *marked_pids(MARK, session)} - {os.getpid()})

    end_processes(family, grace_s)


class _Ends:
    """Waits for the end of a child: at once where the kernel reports it, else by a look every few ms."""

    def __init__(self, children: list[subprocess.Popen[bytes]]) -> None:
        self._poll = select.poll()
        self._open: dict[int, subprocess.Popen[bytes]] = {}
        self._polls = True
        try:
            for child in children:
                descriptor = os.pidfd_open(child.pid)
                self._open[descriptor] = child
                self._poll.register(descriptor, select.POLLIN)
        except (AttributeError, OSError):  # an older Python, an older kernel
            self._polls = False

    def wait(self, seconds: float) -> None:
        """Return when a child has ended that `poll` has not seen ended, or after `seconds`."""
        if not self._polls:
            time.sleep(min(seconds, _POLL_S))
            return
        for descriptor, child in list(self._open.items()):
            if child.returncode is not None:
                self._poll.unregister(descriptor)
                del self._open[descriptor]
                os.close(descriptor)
        # Rounded up: not a moment too early, again and again.
        self._poll.poll(max(0, ceil(seconds * 1000)))

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()


class Pauses:
    """When a payload waits, such as for its turn: that is no time of its own. This one never does."""

    def started(self, roots: list[int], session: str) -> None:
        """The payload's processes have been started, with TRANSECT_PAYLOAD=session."""

    @property
    def waits(self) -> bool:
        """Whether it waits now."""
        return False

    def waited_s(self) -> float:
        """Return how long it has waited in all; may raise what is to end it."""
        return 0.0


def run(
    commands: list[tuple[list[str], dict[str, str]]],
    *,
    log: Path,
    cwd: Path,
    seconds: float,
    memory_bytes: int | None = None,
    lost: Callable[[], str] = str,
    pauses: Pauses | None = None,
) -> Outcome:
    """Start every (argv, variables) at once, wait for all, end all as soon as one fails.

    `lost` is asked now and then whether the payload can still end, and says why not. What it waits by its
    `pauses` counts neither for `seconds` nor in the outcome.
    stdout and stderr go to `log`. On an exception, KeyboardInterrupt and Interruption included,
    every process is ended before it is passed on.
    """
    session, started_ns, pauses = f"{os.getpid()}-{time.time_ns()}", time.monotonic_ns(), pauses or Pauses()
    end: End = "exited"
    peak, next_look, why, next_question = 0, _FIRST_POLL_S, "", _FIRST_QUESTION_S
    # Whether there are such, what the last search found, and when the next one is due.
    apart = any("TRANSECT_DETACHED" in variables for _, variables in commands)
    found, next_search = list[int](), 0.0
    ends: _Ends | None = None
    children: list[subprocess.Popen[bytes]] = []
    is_over = False
    with log.open("ab") as stream:
        try:
            for argv, variables in commands:
                environment = os.environ | variables | {MARK: session}
                child = subprocess.Popen(
                    argv,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    cwd=cwd,
                    env=environment,
                    start_new_session=True,
                )
                children.append(child)
            pids = [child.pid for child in children]
            pauses.started(pids, session)
            ends = _Ends(children)
            while True:
                codes = [child.poll() for child in children]
                now = time.monotonic() - started_ns * 1e-9 - pauses.waited_s()
                if any(codes) or None not in codes:
                    break
                if now > seconds:
                    end = "timeout"
                    break
                if now >= next_look:
                    if is_abandoned():
                        raise Interruption(129)
                    if apart and now >= next_search:
                        found, next_search = marked_pids(MARK, session), now + _SEARCH_S
                    used = resident_bytes({*descendants([*pids, *found])})
                    peak, next_look = max(peak, used), now + _MEMORY_POLL_S
                    if memory_bytes is not None and used > memory_bytes:
                        end = "out-of-memory"
                        break
                    if now >= next_question:
                        if why := lost():
                            end = "lost"
                            break
                        next_question = now + _QUESTIONS_S
                ends.wait(_MEMORY_POLL_S if pauses.waits else min(next_look, seconds) - now)
            took = time.monotonic() - started_ns * 1e-9 - pauses.waited_s()
            failed = [(code, child.pid) for code, child in zip(codes, children, strict=True) if code]
            # One that died by a signal comes first: others fail because it is gone.
            first, pid = min(failed, key=lambda failure: failure[0] > 0, default=(0, None))
            is_over = True
        finally:
            if ends is not None:
                ends.close()
            running = [child.pid for child in children if child.poll() is None]
            # An interruption in the midst of a start leaves a child that is not listed: its mark tells it.
            if running or not is_over or end != "exited" or any(child.returncode for child in children):
                end_all([child.pid for child in children], session, _GRACE_S)
            for child in children:
                child.wait()
    if end == "exited" and first < 0:
        end = "signalled"
    return Outcome(end=end, code=abs(first), seconds=took, peak_bytes=peak, started_ns=started_ns, pid=pid, why=why)
