"""The files beside a record: their checksums, and whether they are what the record says."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.files import sha256_file
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause
from transect.domain.takes import record_of
from transect.engine.job import Job, Result

_READ_WHOLE_BYTES = 1 << 30

# Ours, and a log that a straggler may still write to.
_OURS = {"record.json", "record.earlier.json", "attempt.json", "spec.json", "output.log"}


def checksums_beside(folder: Path, told: object = None) -> dict[str, str]:
    """Return the SHA-256 of each file that a payload left in its cell's folder, by relative path.

    Those that the payload told, by name, are not taken again. Links are left out, and names that are no
    text, and what cannot be read.
    """
    known = told if isinstance(told, dict) else {}
    found = {}
    for here, _, names in os.walk(folder):
        for name in names:
            path = Path(here, name)
            relative = path.relative_to(folder).as_posix()
            if relative in _OURS or path.is_symlink() or not path.is_file():
                continue
            if relative.isprintable():
                own = known.get(relative)
                is_one = isinstance(own, str) and len(own) == hashlib.sha256().digest_size * 2
                with contextlib.suppress(OSError):
                    found[relative] = own if is_one else sha256_file(path)
    return dict(sorted(found.items()))


def changed_file(folder: Path, files: Mapping[str, str], *, read_up_to: float = 0) -> str | None:
    """Return what is wrong with the first of `files` that is not what its record says, or None.

    A file that is not younger than its record is taken to be as it was: the time of its last change
    of any kind, which nobody can set back, says so. One of at most `read_up_to` bytes is read
    nevertheless: a disk may err without a word.
    """
    try:
        written = (folder / "record.json").stat().st_ctime_ns
    except OSError:
        written = 0
    for name, told in files.items():
        path = folder / name
        try:
            facts = path.stat()
            younger = max(facts.st_mtime_ns, facts.st_ctime_ns) > written
            if (younger or facts.st_size <= read_up_to) and sha256_file(path) != told:
                return f"{name} is not what its record says"
        except FileNotFoundError:
            return f"{name} is not there"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return None


def set_aside(paths: StudyPaths, stage: str, cell_id: str) -> Path:
    """Move a record that does not hold out of its cell's folder; return where it is kept.

    Its cell counts as one without a record. Raises OSError when it cannot be moved.
    """
    kept = paths.damaged(stage, cell_id)
    kept.parent.mkdir(parents=True, exist_ok=True)
    if kept.is_dir() and not kept.is_symlink():
        shutil.rmtree(kept)
    paths.record(stage, cell_id).replace(kept)
    return kept


def changed_input(job: Job, inputs: Collection[str]) -> Result | None:
    """Return why the cell cannot run when a file that it takes is not what its own record says.

    That record is set aside, so that the next run makes its cell again. `inputs` as the stage gave them.
    """
    for role in job.spec["inputs"]:
        folder = job.input(role)
        try:
            record = record_of(folder / "record.json")
        except (OSError, BadInput):
            continue  # what needs it says so
        taken = {name: sha for name, sha in record.files.items() if f"{Path(name).name} {sha}" in inputs}
        wrong = changed_file(folder, taken, read_up_to=_READ_WHOLE_BYTES)
        if wrong is not None:
            with contextlib.suppress(FileNotFoundError):  # another job was faster
                set_aside(job.paths, record.stage, record.cell_id)
            text = f"it takes its {role} from {record.cell_id}, whose {wrong}: the next run makes it again"
            return Result.skipped(Cause.MISSING_DEPENDENCY, text)
    return None
