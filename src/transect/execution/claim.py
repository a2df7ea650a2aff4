"""One run at a time in a results folder: two would disturb each other's measurements."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from transect.domain.errors import BadInput
from transect.execution.locks import process_start, still_lives, user_name

__all__ = ["Claim", "cannot_write"]


def cannot_write(results: Path, error: OSError) -> BadInput:
    """Make the error for a results folder that is somebody else's, or on a read-only disk."""
    return BadInput(
        f"results folder {results} cannot be written: {error}: use another one with "
        "--config results=FOLDER"
    )


class Claim:
    """The claim of this process on a results folder, whatever clone or folder it runs from."""

    def __init__(self, results: Path, study: str) -> None:
        self.results = results
        self.path = results / ".transect-owner.json"
        self.study = study
        self._held = False

    def take(self) -> None:
        """Claim the folder. Raises BadInput that names the run which holds it, or why it
        cannot be written.

        A claim whose process has died is taken over. One from another host counts as alive:
        nobody can tell from here.
        """
        facts = {
            "study": self.study,
            "user": user_name(),
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "created": process_start(),
        }
        try:
            self._take(facts)
        except OSError as error:
            raise cannot_write(self.results, error) from None

    def _take(self, facts: dict[str, object]) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        for _ in range(3):
            try:
                handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                holder = self._holder()
                if holder is not None:
                    raise BadInput(self._refusal(holder)) from None
                self.path.unlink(missing_ok=True)
                continue
            with os.fdopen(handle, "w") as stream:
                json.dump(facts, stream)
            self._held = True
            return
        raise BadInput(f"{self.path}: other runs claim this folder at the same time: try again")

    def held_by_another(self) -> bool:
        """Tell whether a run that lives, and is not this one, holds the folder."""
        return not self._held and self._holder() is not None

    def _holder(self) -> dict[str, object] | None:
        """Return who holds the claim; None when it is stale."""
        try:
            facts: dict[str, object] = json.loads(self.path.read_text())
            return facts if still_lives(facts) else None
        except FileNotFoundError:
            return None
        except PermissionError:
            return {}  # another user's: nobody can tell from here
        except (ValueError, KeyError, TypeError):
            # Half written: a claim of this second counts, an older one is a dead run's.
            young = time.time() - self.path.stat().st_mtime < 5
            return {} if young else None

    def _refusal(self, holder: dict[str, object]) -> str:
        who = (
            f"{holder.get('user', '?')}'s run of study '{holder.get('study', '?')}' "
            f"(pid {holder.get('pid', '?')} on {holder.get('host', '?')}, "
            f"since {holder.get('since', '?')})"
        )
        text = (
            f"results folder {self.results} is in use by {who}: wait for it, or use another "
            "folder with --config results=FOLDER"
        )
        if holder.get("host") != os.uname().nodename:
            text += f". If that run no longer lives, delete {self.path}"
        return text

    def give_back(self) -> None:
        """End the claim, if it is ours."""
        if self._held:
            self.path.unlink(missing_ok=True)
            self._held = False
