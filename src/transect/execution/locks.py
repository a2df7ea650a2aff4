"""Snakemake's lock: cleared when its owner is dead, named when it lives.

Snakemake's own lock files do not say whose they are, so every run leaves an owner file beside
them. It holds the pid and the process's start time: a pid alone may be used again.
"""

from __future__ import annotations

import getpass
import json
import os
import time
from pathlib import Path

import psutil

from transect.domain.files import write_atomic

__all__ = ["Owner", "clear_stale_locks", "process_start", "still_lives", "user_name"]


def user_name() -> str:
    """Return the name of this process's user; the number of one without, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def process_start(pid: int | None = None) -> float:
    """Return when a process started, in s since the epoch. Raises psutil.Error when it is gone."""
    return float(psutil.Process(pid).create_time())


def still_lives(facts: dict[str, object]) -> bool:
    """Tell whether the process of `host`, `pid`, `created` still runs."""
    if facts["host"] != os.uname().nodename:
        # Nobody can tell from here: respect it.
        return True
    try:
        process = psutil.Process(int(str(facts["pid"])))
        created = process.create_time()
        # One that was killed stays in the table until its parent asks for it.
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
    except psutil.Error:
        return False
    return abs(created - float(str(facts["created"]))) < 1.0


class Owner:
    """The owner file of this process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "owners" / f"{os.uname().nodename}-{os.getpid()}.json"

    def begin(self) -> None:
        """Note that this process holds the lock."""
        facts = {
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "user": user_name(),
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "created": process_start(),
        }
        write_atomic(self.path, json.dumps(facts))

    def end(self) -> None:
        """The lock is given back."""
        self.path.unlink(missing_ok=True)


def clear_stale_locks(folder: Path) -> str | None:
    """Remove the locks in `.snakemake` when every owner is dead.

    Returns what to tell the user: that a stale lock was cleared, who holds a live one, or None.
    """
    owners = []
    for path in sorted((folder / "owners").glob("*.json")):
        try:
            facts = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if int(facts["pid"]) == os.getpid() and facts["host"] == os.uname().nodename:
            continue
        if still_lives(facts):
            owners.append(facts)
        else:
            path.unlink(missing_ok=True)
    locks = list((folder / "locks").glob("*.lock"))
    if not locks:
        return None
    if owners:
        who = owners[0]
        return (
            f"this folder is in use by {who['user']}'s run, pid {who['pid']} on {who['host']}, "
            f"since {who['since']}"
        )
    for lock in locks:
        lock.unlink(missing_ok=True)
    return "cleared the lock of a run that no longer lives"
