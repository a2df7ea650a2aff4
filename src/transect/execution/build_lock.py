"""One builder of an environment or image at a time; who waits says for whom, and how far that one is."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from transect.domain.terminal import say
from transect.execution.locks import user_name

__all__ = ["build_lock", "builder"]

# Who waits looks so often, and says so.
_POLL_S, _TELL_S = 0.5, 60.0


@contextmanager
def build_lock(folder: Path, log: Path | None = None) -> Iterator[None]:
    """Hold the lock of an environment or image: two studies may ask at once, and the second one waits.

    It says every minute for whom, and how far that one is: the lock tells who builds, and its log.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("a+") as lock:
        begin = said = time.monotonic()
        while not _try_lock(lock):
            if (now := time.monotonic()) - said >= _TELL_S or said == begin:
                lock.seek(0)
                waited = f" ({now - begin:.0f} s by now)" if said > begin else ""
                say(f"[transect] waits{waited} for {folder}, {builder(lock.read())}")
                said = now
            time.sleep(_POLL_S)
        lock.truncate(0)
        who = {"user": user_name(), "pid": os.getpid(), "host": os.uname().nodename}
        json.dump(who | ({"log": str(log)} if log else {}), lock)
        lock.flush()
        yield


def _try_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def builder(text: str) -> str:
    """Say who builds an environment, by what its lock tells, and what stands last in the build's log."""
    try:
        facts = json.loads(text)
        who = f"which {facts['user']} builds (pid {facts['pid']} on {facts['host']})"
        log = facts.get("log")
    except (ValueError, KeyError, TypeError, AttributeError):
        return "which another process builds"
    if log is None:
        return who
    try:
        lines = Path(log).read_text(errors="replace").splitlines()
        ago = max(0.0, time.time() - Path(log).stat().st_mtime)
    except OSError:
        return f"{who}, without a log yet"
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{who}; its log {log} is {ago:.0f} s old and ends with: {last[:300] or 'nothing yet'}"
