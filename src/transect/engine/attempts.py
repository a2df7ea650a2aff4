"""What became of an earlier attempt that never wrote its record, and its leftovers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transect.domain.files import write_atomic
from transect.domain.owner import SESSION, Owner
from transect.domain.record import Cause
from transect.engine.scheduler import Fate, scheduler
from transect.launch.processes import end_processes, marked

CELL_VARIABLE = "TRANSECT_CELL"


def clear_leftovers(folder: Path) -> int:
    """End processes that an earlier attempt at this cell left on this machine; return how many."""
    return end_processes(lambda: marked(CELL_VARIABLE, str(folder)), 0.0)


class Attempt:
    """A side file that no rule declares: it lives from a payload's start to its record."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "attempt.json"

    def begin(self, fingerprint: str, kept: str = "", *, together: bool = False) -> None:
        """Note who runs the payload now. `kept`: the parts of an earlier attempt that it continues from.

        `together`: others of a heat live beside it.
        """
        facts = {"fingerprint": fingerprint, "kept": kept, "job": scheduler().job(), "session": os.environ.get(SESSION)}
        write_atomic(self.path, json.dumps(Owner.me().facts() | facts | {"together": together}))

    def _facts(self) -> dict[str, Any]:
        try:
            facts: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return facts

    def of_session(self) -> dict[str, Any] | None:
        """Return the facts of an attempt of this same session of Snakemake, or None.

        An attempt of another session was interrupted together with its Snakemake: its cell
        runs again. One of this session was killed alone: its payload is the likely reason.
        """
        facts, session = self._facts(), os.environ.get(SESSION)
        return facts if session is not None and facts.get("session") == session else None

    def earlier(self, fingerprint: str) -> dict[str, Any] | None:
        """Return the facts of an attempt of this session at this same work, or None.

        Of several in a heat nobody knows which one was the reason: each runs again, by itself.
        """
        facts = self.of_session()
        return facts if facts and facts["fingerprint"] == fingerprint and not facts.get("together") else None

    def was_together(self) -> bool:
        """Whether an attempt of this session ended without a record in a heat."""
        return bool((self.of_session() or {}).get("together"))

    def kept_by(self, fingerprint: str) -> str | None:
        """Return what an attempt at this same work, of any session, went on with; None without one."""
        facts = self._facts()
        return str(facts["kept"]) if facts.get("fingerprint") == fingerprint else None

    def end(self) -> None:
        """The record is written."""
        self.path.unlink(missing_ok=True)


def fate_of(earlier: Mapping[str, Any]) -> Fate:
    """Return what became of an attempt that never wrote its record."""
    if earlier["job"]:
        return scheduler().fate(earlier["job"])
    return Fate(cause=Cause.KILLED, message=f"its runner (pid {earlier['pid']}) was killed")
