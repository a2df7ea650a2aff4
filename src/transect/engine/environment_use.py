"""Which studies use which environments, and since when: what `transect clean --environments` goes by.

Beside the environments lies `used/NAME-LOCK/`, with a file for each study that ran with the environment or its image. It says where
the definition and the study's results are; its time is that of the last use. In a cache that others keep, and that
is readable only, nothing is noted, and nothing can be removed.
"""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transect.domain.files import digest, write_atomic
from transect.domain.paths import StudyPaths, environments_folder
from transect.engine.locks import who_runs
from transect.launch.images import parts_of
from transect.planning.environments import environment_source, lock_hash, needed_environments

if TYPE_CHECKING:
    from transect.planning.plan import StudyPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """One note: when (seconds since 1970), the folder of the definition, and the study, where it was one."""

    when: float
    definition: Path
    study: StudyPaths | None


def notes_of(folder: Path) -> Path:
    """Return where the uses of an environment or an image are noted, given its own folder."""
    return environments_folder() / "used" / folder.name


def note_use(name: str, lock: str, study: StudyPaths | None = None) -> None:
    """Note that an environment or image is used now, by a study or without one."""
    facts = {"definition": str(environment_source(parts_of(name)[0]).resolve())}
    if study is not None:
        facts |= {"results": str(study.results.resolve()), "study": study.study}
    folder = environments_folder() / "used" / f"{parts_of(name)[0]}-{lock}"
    with contextlib.suppress(OSError):  # a cache that others keep may be readable only
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            # Whoever may build beside us may note what they use.
            mode = stat.S_IMODE(environments_folder().stat().st_mode)
            for made in (folder, folder.parent):
                with contextlib.suppress(PermissionError):
                    made.chmod(mode)
        write_atomic(folder / f"{digest(facts.values())[:16]}.json", json.dumps(facts) + "\n")


def note_uses(plan: StudyPlan, locks: Mapping[str, str]) -> None:
    """Note that a study, which runs from now on, uses environments of these lock hashes, and those that they stand on.

    What the system offers instead, as modules or as an image, is not ours to keep or remove.
    """
    todo = {(name, lock) for name, lock in locks.items() if name not in plan.system.environments}
    noted: set[tuple[str, str]] = set()
    while todo:
        name, lock = todo.pop()
        noted.add((name, lock))
        note_use(name, lock, plan.paths)
        environment, wrapper = parts_of(name)
        below = [environment] if wrapper else needed_environments(environment)
        todo |= {(other, lock_hash(other)) for other in below} - noted


def uses_of(folder: Path) -> list[Use]:
    """Return what is noted of an environment or an image, given its own folder, without what cannot be read."""
    return [use for file in _notes(folder) if (use := _use(file))]


def unread_note(folder: Path) -> Path | None:
    """Return a note that is there and cannot be read, such as one that its writer kept to themselves, or None."""
    return next((file for file in _notes(folder) if _use(file) is None and file.exists()), None)


def _notes(folder: Path) -> list[Path]:
    return sorted(notes_of(folder).glob("*.json"))


def _use(file: Path) -> Use | None:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        study = StudyPaths(results=Path(facts["results"]), study=str(facts["study"])) if "study" in facts else None
        return Use(when=file.stat().st_mtime, definition=Path(facts["definition"]), study=study)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def running(uses: Iterable[Use]) -> str | None:
    """Return which of the studies runs now, and by whom, or None."""
    for study in dict.fromkeys(use.study for use in uses if use.study):
        try:
            holder = who_runs(study)
        except OSError as error:  # such as a folder of others
            holder = error.strerror
        if holder is not None:
            return f"study '{study.study}' in {study.results} runs: {holder}"
    return None
