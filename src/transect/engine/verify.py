"""Whether the records of a study are what was written, with their files and what they were made from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from transect.domain.paths import StudyPaths
from transect.domain.record import run_fingerprint
from transect.engine.differences import stored_sources
from transect.engine.plan_files import planned_specs, study_file
from transect.engine.store import Damaged, Holds, state, whole
from transect.planning.code_hash import changed_sources

# As of results that somebody was given.
_ALONE = "what it was made from is not all here: there is no folder environments beside the study's"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The verification of one record. `wrong` is empty for one that holds; `note`: what was not checked.

    `edited` are source files of it that are other ones now: it is what was written, and its cell would run again.
    """

    stage: str
    cell: str
    wrong: str = ""
    note: str = ""
    edited: tuple[str, ...] = ()


def _look(paths: StudyPaths, stage: str, cell: str, spec: dict[str, Any] | None) -> Verdict:
    """Read a record and all its files, and hold it to what it was made from, where it is of the study as planned."""
    found = whole(paths, stage, cell, read_up_to=math.inf)
    if isinstance(found, Damaged):
        return Verdict(stage=stage, cell=cell, wrong=found.what)
    assert isinstance(found, Holds)
    if spec is None or found.record["fingerprint"] != run_fingerprint(spec["fingerprint"], found.record["inputs"]):
        return Verdict(stage=stage, cell=cell)  # of another state of the study: `transect why` says so
    if not (paths.results / "environments").is_dir() and (spec["environment"] or _outside_gone(spec)):
        return Verdict(stage=stage, cell=cell, note=_ALONE)
    if any(not isinstance(whole(paths, *source, files=False), Holds) for source in spec["inputs"].values()):
        return Verdict(stage=stage, cell=cell)  # that cell is named itself
    changed = [reason.text for reason in state(paths, spec).reasons if reason.kind == "input"]
    return Verdict(stage=stage, cell=cell, wrong=f"not what it was made from: {', '.join(changed)}" if changed else "")


def _outside_gone(spec: dict[str, Any]) -> bool:
    """Whether files from outside of the results, such as logs, are not here."""
    named = (spec.get("path"), *spec.get("files", ()), *spec.get("named", ()))
    return any(name and not Path(name).exists() for name in named)


def verify_records(paths: StudyPaths) -> Iterator[Verdict]:
    """Yield a verdict on every record, sorted by stage and cell. Reads all files beside them."""
    paths = StudyPaths(results=paths.results.resolve(), study=paths.study)
    specs = {(spec["cell"]["stage"], spec["cell_id"]): spec for spec in planned_specs(paths)}
    edited = cache(partial(_edited, paths, study_file(paths)))
    for path in sorted(paths.folder.glob("*/*~*/record.json")):
        stage, cell = path.parts[-3:-1]
        spec = specs.get((stage, cell))
        verdict = _look(paths, stage, cell, spec)
        if spec is not None and not (verdict.wrong or verdict.note):
            verdict = replace(verdict, edited=edited(str(spec["sources"])))
        yield verdict


def _edited(paths: StudyPaths, study: Path | None, sources: str) -> tuple[str, ...]:
    try:
        return tuple(changed_sources(stored_sources(paths, sources), study.parent if study else None))
    except (OSError, ValueError, AttributeError):
        return ()
