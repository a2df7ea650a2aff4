"""What Slurm's own programs say, within a bounded time, and its logs."""

import contextlib
import getpass
import os
import re
import subprocess
import time
from functools import cache
from pathlib import Path

_ANSWER_S = 120


def _ask(*command: str) -> str | None:
    """Return what a program of Slurm's prints; None when it fails, hangs or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_ANSWER_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def known(job: str) -> bool:
    """Tell whether Slurm knows a job; True also when it cannot be asked now."""
    return _ask("scontrol", "show", "job", job) is not None or _ask("scontrol", "ping") is None


@cache
def accounting() -> bool:
    """Tell whether this Slurm has a database that `sacct` can ask."""
    match = re.search(r"^AccountingStorageType\s*=\s*(\S+)", _ask("scontrol", "show", "config") or "", re.MULTILINE)
    return match is not None and "none" not in match[1]


@cache
def accounts() -> list[str] | None:
    """Return the accounts that this user may charge; None when sacctmgr does not answer."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in containers
        user = str(os.getuid())
    text = _ask("sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=account")
    return None if text is None else sorted(set(text.split()))


def remove_old_logs(folder: Path, days: float) -> None:
    """Remove logs older than this. Folders stay: a waiting job of another run writes its log into one that is empty now."""
    for within, _, names in os.walk(folder):
        for path in (Path(within, name) for name in names if name.endswith(".log")):
            with contextlib.suppress(OSError):  # another run removed it, or it is somebody else's
                if time.time() - path.stat().st_mtime > days * 86400:
                    path.unlink()
