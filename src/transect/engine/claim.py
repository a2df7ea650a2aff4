"""One run of a study at a time: two would make the same cells."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.owner import SILENT_S, Owner
from transect.domain.paths import StudyPaths
from transect.domain.terminal import say
from transect.engine.locks import Held
from transect.engine.scheduler import scheduler
from transect.engine.staleness import stamp_entry


def cannot_write(results: Path, error: OSError) -> BadInput:
    """Make the error for a results folder that is somebody else's, or on a read-only disk."""
    return BadInput(f"results folder {results} cannot be written: {error}: use another: --config results=FOLDER")


def check_environments(paths: StudyPaths, locks: Mapping[str, str]) -> None:
    """Raise BadInput where a study that runs now uses another state of an environment.

    Studies of one results folder share the stamps of environments: its next cells would find one exchanged, and fail.
    """
    for file in sorted(paths.claim.parent.glob("*.json")):
        other_study = StudyPaths(results=paths.results, study=file.stem)
        theirs = stamp_entry(other_study.flow, "environments") or {}
        names = [name for name, lock in locks.items() if theirs.get(name, lock) != lock]
        if names and file != paths.claim and Held(file, lambda: None).holder() is not None:
            raise BadInput(
                f"study '{other_study.study}' runs in results folder {paths.results} with another state of environment "
                f"{', '.join(names)} than is here now: wait for it, or use another folder with --config results=FOLDER"
            )


class Claim:
    """The claim of this process on the results of a study, whatever clone or folder it runs from."""

    def __init__(self, results: Path, study: str) -> None:
        self._paths = StudyPaths(results=results, study=study)
        self.path = self._paths.claim
        self._held = Held(self.path, self._lost, study=study)

    def take(self) -> None:
        """Claim the study; the claim of a run that has died is taken over.

        Raises BadInput that names the run which holds it, or why it cannot be written.
        """
        try:
            holder = self._held.take()
        except OSError as error:
            raise cannot_write(self._paths.results, error) from None
        if holder is not None:
            raise BadInput(self._refusal(holder))

    def held_by_another(self) -> bool:
        """Tell whether a run that lives, and is not this one, holds the study."""
        return self._held.holder() is not None

    def give_back(self) -> None:
        """End the claim, if it is ours."""
        self._held.give_back()

    def _lost(self) -> None:
        say(
            f"[transect] this run of study '{self._paths.study}' gave no sign of life for {SILENT_S:.0f} s, "
            "and another one has begun: this one ends"
        )
        os.kill(os.getpid(), signal.SIGINT)  # as by Ctrl-C

    def _refusal(self, holder: dict[str, Any]) -> str:
        user, pid, host, since = (holder.get(key, "?") for key in ("user", "pid", "host", "since"))
        text = (
            f"study '{self._paths.study}' in results folder {self._paths.results} is in use by {user}'s run (pid {pid} "
            f"on {host}, since {since}{self._jobs()}): wait for it, or use another folder with --config results=FOLDER"
        )
        if not holder or not Owner.of(holder).is_here:
            text += (
                f". It is on another host or in another container, and gave its last sign of life "
                f"{holder.get('silent_s', 0):.0f} s ago: after {SILENT_S:.0f} s without any it counts as ended, and "
                "whoever then starts the study cancels the jobs that it left"
            )
        return text

    def _jobs(self) -> str:
        names: list[str] = []
        for file in self._paths.runs.glob("*.json"):
            with contextlib.suppress(OSError):  # it ends just now
                names += json.loads(file.read_text())
        jobs = scheduler().queued(names) if names else None
        return f", jobs {', '.join(jobs)} in the queue" if jobs else ""
