"""Decides whether the record of a cell is there, whole and up to date: the only place that does.

`intact` asks whether a record is there and whole, with its files and within its cell's limits: cheap enough for every
cell of a plan. `state` also compares what it was made from with its cell's present specification. All who
ask whether a cell runs again ask here: the block's runner, `transect why` and `verify`, a dry run, what settles a run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.domain.errors import FAULTS, BadInput
from transect.domain.files import sha256_file
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, own_record, run_fingerprint
from transect.domain.takes import record_of
from transect.engine.differences import Reason, differences, other_inputs, stored_sources
from transect.engine.job import Job, Result, load_job
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import StageRunner, named_facts, not_ok

# What a cell of these causes lacked may have been mended outside of what a fingerprint covers.
_MENDED = frozenset({Cause.MISSING_DEPENDENCY, Cause.UNSUPPORTED})
# The length of a SHA-256 as text.
_SHA256 = 64
# What a cell takes is read up to this size before it runs; larger files go by their time stamps.
_READ_WHOLE_BYTES = 1 << 30
# Ours, and a log that a straggler may still write to.
_OURS = {"record.json", "record.earlier.json", "attempt.json", "spec.json", "output.log"}


@dataclass(frozen=True, slots=True)
class Holds:
    """A record that counts: its content as it stands."""

    record: Mapping[str, Any]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """None: its cell need not run."""
        return ()


@dataclass(frozen=True, slots=True)
class Stale:
    """No record, or one of another specification than its cell has now."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record that differs from what was written, or with files that do."""

    what: str

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The damage."""
        return (Reason("damaged", self.what),)


State = Holds | Stale | Damaged
MISSING = Stale((Reason("missing", "it has no record"),))


def whole(paths: StudyPaths, stage: str, cell_id: str, *, files: bool = True, read_up_to: float = 0) -> State:
    """Return whether a record is there and is what was written, and its files too where `files` count."""
    path = paths.record(stage, cell_id)
    if not os.path.lexists(path):
        return MISSING
    try:
        # Not validated: that takes longer for fifty thousand records than to plan them, and its checksum holds.
        record = own_record(path, stage, cell_id)
        wrong = changed_file(path.parent, record["files"], read_up_to=read_up_to) if files else None
        str(record["fingerprint"]), list(record["inputs"])
    except BadInput as error:
        return Damaged(f"its record cannot be read: {str(error).removeprefix(f'{path}: ')}")
    except (AttributeError, KeyError, TypeError) as error:
        return Damaged(f"its record cannot be read: {type(error).__name__}: {error}")
    return Damaged(wrong) if wrong else Holds(record)


def intact(paths: StudyPaths, spec: Mapping[str, Any]) -> State:
    """Return whether a cell's record holds whatever its fingerprint says: whole, and within the cell's limits.

    Its files count where others take them.
    """
    found = whole(paths, spec["cell"]["stage"], spec["cell_id"], files=bool(spec.get("taken")))
    if isinstance(found, Holds) and (grown := outgrown(found.record, spec["cell_limits"])):
        return Stale((Reason("limit", grown),))
    return found


def state(
    paths: StudyPaths,
    spec: dict[str, Any],
    job: Job | None = None,
    *,
    upstream: Sequence[Reason] = (),
    sources: Callable[[str], Mapping[str, str]] | None = None,
) -> State:
    """Return whether a cell's record holds: there, whole, within limits, and of the cell's present specification.

    `upstream`: reasons of the cells that it takes from, which would run again. `sources` gives the files that a hash
    of sources stands for; without it those are asked that the study's plan noted.
    """
    found = intact(paths, spec)
    if not isinstance(found, Holds):
        return found
    source_files = sources or (lambda name: stored_sources(paths, name))
    try:
        job = job or load_job(spec, paths)
        fingerprint, inputs = fingerprint_of(job, RUNNERS.get(job.cell.stage))
    except FAULTS as error:  # unreadable inputs, or a plug-in's fault: its turn tells
        reasons = [*upstream, *differences(paths, spec, source_files)]
        return Stale(tuple(reasons or [Reason("input", f"{type(error).__name__}: {error}")]))
    if found.record["fingerprint"] == fingerprint:
        # What stands beside a record may be older than it, or not there; its runner keeps it.
        return Stale(tuple(upstream)) if upstream else found
    reasons = [*upstream, *differences(paths, spec, source_files)]
    return Stale(tuple(reasons or other_inputs(inputs, found.record["inputs"])))


def kept(job: Job) -> bool:
    """Whether a runner keeps a cell's record: it holds, and nothing that it lacked may have been mended since."""
    found = state(job.paths, job.spec, job)
    return isinstance(found, Holds) and found.record.get("cause") not in _MENDED


def fingerprint_of(job: Job, stage: StageRunner) -> tuple[str, list[str]]:
    """Return the fingerprint, the plan part with the checksums of the inputs, and these.

    An input that is not ok counts too: it may have left the same bytes, and be judged otherwise.
    """
    inputs = [*stage.inputs(job), *named_facts(job), *not_ok(job)]
    return run_fingerprint(job.spec["fingerprint"], inputs), inputs


# The files beside a record.


def checksums_beside(folder: Path, reported: object = None) -> dict[str, str]:
    """Return the SHA-256 of each file that a payload left in its cell's folder, by relative path.

    Those in `reported`, by name, are not computed again. Links, names that are no text and files that
    cannot be read are left out.
    """
    known = reported if isinstance(reported, dict) else {}
    found: dict[str, str] = {}
    for path in (Path(here, name) for here, _, names in os.walk(folder) for name in names):
        name = path.relative_to(folder).as_posix()
        if name not in _OURS and name.isprintable() and path.is_file() and not path.is_symlink():
            with contextlib.suppress(OSError):
                found[name] = str(checksum) if len(checksum := known.get(name, "")) == _SHA256 else sha256_file(path)
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
    for name, expected in files.items():
        path = folder / name
        try:
            facts = path.stat()
            younger = max(facts.st_mtime_ns, facts.st_ctime_ns) > written
            if (younger or facts.st_size <= read_up_to) and sha256_file(path) != expected:
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
    kept_as = paths.damaged(stage, cell_id)
    kept_as.parent.mkdir(parents=True, exist_ok=True)
    paths.record(stage, cell_id).replace(kept_as)
    return kept_as


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
            message = f"it takes its {role} from {record.cell_id}, whose {wrong}: the next run makes it again"
            return Result.skipped(Cause.MISSING_DEPENDENCY, message)
    return None


# Limits say whether a payload may go on, not what it computes: a record holds while it fits them.

_MIB = 2**20


def used_limits(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return those limits that end a payload: `seconds`, `memory_mb`."""
    return {key: limits[key] for key in ("seconds", "memory_mb")}


def outgrown(record: Mapping[str, Any], limits: Mapping[str, Any]) -> str | None:
    """Return why a record does not hold under these limits, or None.

    One that ended at a limit holds unless there is more room now; any other as long as what it
    used fits, or the limit is not below the one that it ended well under: ranks' own peaks, which
    need not fall together, and pages that they share may sum to more than a limit that held.
    `record` has the keys of `transect.domain.record.Record`.
    """
    was, details = record.get("limits") or {}, record.get("details") or {}
    seconds, memory = limits["seconds"], limits["memory_mb"]
    if record.get("cause") == Cause.TIMEOUT:
        if was and seconds > was["seconds"]:
            return f"it ended at limits.seconds: {was['seconds']:g}, which is {seconds:g} now"
        return None
    if record.get("cause") == Cause.OUT_OF_MEMORY:
        old = was.get("memory_mb")
        if old is not None and (memory is None or memory > old):
            return f"it ended at limits.memory_mb: {old}, which is {memory or 'null'} now"
        return None
    took = details.get("payload_s")
    if took is not None and took > seconds and not ("seconds" in was and seconds >= was["seconds"]):
        return f"it took {took:.3g} s, more than limits.seconds: {seconds:g} now allows"
    # srun's ranks are none of the payload's children: they tell themselves.
    ranks = sum(peak for peak in details.get("rank_peak_memory_bytes") or () if peak)
    held = max(details.get("payload_peak_bytes") or 0, ranks / record.get("cell", {}).get("nodes", 1))
    kept_to = was.get("memory_mb")
    if memory is not None and held > memory * _MIB and not (kept_to and memory >= kept_to):
        return f"it held {held / _MIB:.0f} MB, more than limits.memory_mb: {memory} now allows"
    return None
