"""What became of an earlier attempt that never wrote its record, and its leftovers."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import psutil

from transect.domain.files import write_atomic

CELL_VARIABLE = "TRANSECT_CELL"


def clear_leftovers(folder: Path) -> int:
    """End processes that an earlier attempt at this cell left on this machine; return how many."""
    mark = str(folder)
    left = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(CELL_VARIABLE) == mark:
                process.kill()
                left.append(process)
        except (psutil.Error, OSError):
            continue
    psutil.wait_procs(left, timeout=10)
    return len(left)


class Attempt:
    """A side file that no rule declares: it lives from a payload's start to its record."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "attempt.json"

    def begin(self, fingerprint: str, kept: str = "") -> None:
        """Note who runs the payload now. `kept` says what of an earlier attempt it goes on with."""
        facts = {
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "started": time.time(),
            "fingerprint": fingerprint,
            "kept": kept,
            "slurm_job": os.environ.get("SLURM_JOB_ID"),
            "session": os.environ.get("TRANSECT_SNAKEMAKE"),
        }
        write_atomic(self.path, json.dumps(facts))

    def of_session(self) -> dict[str, Any] | None:
        """Return the facts of an attempt of this same session of Snakemake, or None.

        An attempt of another session was interrupted together with its Snakemake: its cell
        runs again. One of this session was killed alone: its payload is the likely reason.
        """
        try:
            facts: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        session = os.environ.get("TRANSECT_SNAKEMAKE")
        return facts if session is not None and facts["session"] == session else None

    def earlier(self, fingerprint: str) -> dict[str, Any] | None:
        """Return the facts of an attempt of this session at this same work, or None."""
        facts = self.of_session()
        return facts if facts is not None and facts["fingerprint"] == fingerprint else None

    def kept_by(self, fingerprint: str) -> str | None:
        """Return what an attempt at this same work, of any session, went on with; None without one."""
        try:
            facts = json.loads(self.path.read_text(encoding="utf-8"))
            return str(facts["kept"]) if facts["fingerprint"] == fingerprint else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def end(self) -> None:
        """The record is written."""
        self.path.unlink(missing_ok=True)
