"""Running a payload's processes under a time and a memory limit, leaving none behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

__all__ = ["Outcome", "end_all", "run"]

_POLL_S = 0.02
_MEMORY_POLL_S = 0.2
# Bounds: srun and mpiexec need a second to end their ranks, and more beside busy neighbours.
_GRACE_S = 30.0
_KILL_S = 60.0

End = Literal["exited", "signalled", "timeout", "out-of-memory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How the processes ended. `code` is the first failing one's exit code, or its signal."""

    end: End
    code: int
    seconds: float
    peak_bytes: int


def _family(roots: list[int], session: str) -> list[psutil.Process]:
    """Return our children and their descendants, those too that changed session or parent."""
    found: dict[int, psutil.Process] = {}
    for pid in roots:
        try:
            root = psutil.Process(pid)
            for process in [root, *root.children(recursive=True)]:
                found[process.pid] = process
        except psutil.Error:
            continue
    for process in psutil.process_iter(["pid"]):
        try:
            if process.pid not in found and process.environ().get("TRANSECT_PAYLOAD") == session:
                found[process.pid] = process
        except (psutil.Error, OSError):
            continue
    return [p for p in found.values() if p.pid != os.getpid()]


def _resident(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        try:
            root = psutil.Process(pid)
            for process in [root, *root.children(recursive=True)]:
                total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


def end_all(roots: list[int], session: str) -> None:
    """Ask nicely, wait a little, then end every process of the payload.

    Those are `roots` with their descendants, and whatever has TRANSECT_PAYLOAD=session in its
    environment.
    """
    for number, patience in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILL_S)):
        family = _family(roots, session)
        if not family:
            return
        for process in family:
            try:
                process.send_signal(number)
            except psutil.Error:
                continue
        psutil.wait_procs(family, timeout=patience)


def _abandoned() -> bool:
    """Tell whether the Snakemake that asked for this cell has died (SIGKILL leaves us alone)."""
    owner = os.environ.get("TRANSECT_SNAKEMAKE", "")
    pid, _, rest = owner.partition(":")
    host, _, _ = rest.partition(":")
    return bool(pid) and host == os.uname().nodename and not psutil.pid_exists(int(pid))


def run(
    commands: list[tuple[list[str], dict[str, str]]],
    *,
    log: Path,
    cwd: Path,
    seconds: float,
    memory_bytes: int | None = None,
) -> Outcome:
    """Start every (argv, variables) at once, wait for all, end all as soon as one fails.

    stdout and stderr go to `log`. On an exception, KeyboardInterrupt and SystemExit included,
    every process is ended before it is passed on.
    """
    session = f"{os.getpid()}-{time.time_ns()}"
    begin = time.monotonic()
    peak, next_look, end = 0, 0.0, "exited"
    children: list[subprocess.Popen[bytes]] = []
    with log.open("ab") as stream:
        try:
            for argv, variables in commands:
                environment = os.environ | variables | {"TRANSECT_PAYLOAD": session}
                children.append(
                    subprocess.Popen(
                        argv,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                        stdin=subprocess.DEVNULL,
                        cwd=cwd,
                        env=environment,
                        start_new_session=True,
                    )
                )
            pids = [child.pid for child in children]
            while True:
                codes = [child.poll() for child in children]
                now = time.monotonic() - begin
                if any(codes) or None not in codes:
                    break
                if now > seconds:
                    end = "timeout"
                    break
                if now >= next_look:
                    if _abandoned():
                        raise SystemExit(129)
                    used = _resident(pids)
                    peak, next_look = max(peak, used), now + _MEMORY_POLL_S
                    if memory_bytes is not None and used > memory_bytes:
                        end = "out-of-memory"
                        break
                time.sleep(_POLL_S)
            first = next((code for code in codes if code), 0)
        finally:
            running = [child.pid for child in children if child.poll() is None]
            if running or end != "exited" or any(child.returncode for child in children):
                end_all([child.pid for child in children], session)
            for child in children:
                child.wait()
    if end == "exited" and first < 0:
        end = "signalled"
    return Outcome(
        end=end,  # type: ignore[arg-type]
        code=abs(first),
        seconds=time.monotonic() - begin,
        peak_bytes=peak,
    )
