"""Whether the records of a study are what was written, with their files and what they were made from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import digest
from transect.domain.paths import StudyPaths
from transect.domain.record import own_record, read_record
from transect.engine.job import load_job
from transect.engine.plan_files import read_block, study_file
from transect.engine.run_cell import fingerprint_of
from transect.engine.side_files import changed_file
from transect.engine.stage import RUNNERS
from transect.planning.code_hash import changed_sources

UNSEALED = "no checksum: made before records had one"
# As of results that somebody was given.
_ALONE = "what it was made from is not all here: there is no folder environments beside the study's"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What became of one record. `wrong` is empty for one that holds; `note`: what was not checked.

    `edited` are source files of it that are other ones now: it is what was written, and its cell would run again.
    """

    stage: str
    cell: str
    wrong: str = ""
    note: str = ""
    edited: tuple[str, ...] = ()


def _specs(paths: StudyPaths) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the specs of all cells as planned last."""
    found = {}
    for file in paths.specs.glob("*/*.json"):
        if file.parent.name == "sources":
            continue
        try:
            head, specs = read_block(file)
            for spec in specs:
                found[spec["cell"]["stage"], spec["cell_id"]] = spec | {"about": head["about"]}
        except (BadInput, KeyError, TypeError):
            continue  # the next run writes it anew
    return found


def _inputs(record: dict[str, Any], spec: dict[str, Any], paths: StudyPaths) -> str:
    """Return what a record was made from and is another one now, or nothing."""
    before = [str(one) for one in record.get("inputs", ())]
    if record["fingerprint"] != digest([spec["fingerprint"], *before])[:16]:
        return ""  # of another state of the study: it runs again anyway, as `transect why` says
    try:
        for stage, cell in spec["inputs"].values():
            own_record(paths.record(stage, cell), stage, cell)
    except BadInput:
        return ""  # that cell is named itself
    job = load_job(spec, paths)
    _, now = fingerprint_of(job, RUNNERS.get(job.cell.stage))
    names = dict.fromkeys(one.rpartition(" ")[0] for one in sorted(set(now) ^ set(before)))
    return f"not what it was made from: {', '.join(names)}" if names else ""


def _look(path: Path, spec: dict[str, Any] | None, paths: StudyPaths) -> Verdict:
    stage, cell = path.parts[-3], path.parts[-2]
    try:
        record = own_record(path, stage, cell)
        read_record(path)
    except BadInput as error:
        return Verdict(stage=stage, cell=cell, wrong=str(error).removeprefix(f"{path}: "))
    wrong = changed_file(path.parent, record.get("files", {}), read_up_to=math.inf) or ""
    if not record.get("checksum"):
        return Verdict(stage=stage, cell=cell, wrong=wrong, note=UNSEALED)
    if wrong or spec is None:
        return Verdict(stage=stage, cell=cell, wrong=wrong)
    try:
        return Verdict(stage=stage, cell=cell, wrong=_inputs(record, spec, paths))
    except Exception as error:  # an input that cannot be read, or a plug-in's fault
        if not (paths.results / "environments").is_dir():
            return Verdict(stage=stage, cell=cell, note=_ALONE)
        text = f"what it was made from cannot be read: {type(error).__name__}: {error}"
        return Verdict(stage=stage, cell=cell, wrong=text)


def verify_records(paths: StudyPaths) -> Iterator[Verdict]:
    """Yield a verdict on every record, sorted by stage and cell. Reads all files beside them."""
    paths = StudyPaths(results=paths.results.resolve(), study=paths.study)
    specs = _specs(paths)
    edited = cache(partial(_edited, paths, study_file(paths)))
    for path in sorted(paths.folder.glob("*/*~*/record.json")):
        spec = specs.get((path.parts[-3], path.parts[-2]))
        verdict = _look(path, spec, paths)
        if spec is not None and not (verdict.wrong or verdict.note):
            verdict = replace(verdict, edited=edited(str(spec["sources"])))
        yield verdict


def _edited(paths: StudyPaths, study: Path | None, sources: str) -> tuple[str, ...]:
    """Return which of the source files that a hash stands for are other ones now."""
    try:
        files = json.loads(paths.sources(sources).read_text(encoding="utf-8"))
        return tuple(changed_sources(files, study.parent if study else None))
    except (OSError, ValueError, AttributeError):
        return ()
