"""Writes the RO-Crate metadata of a study's folder, and holds the folder to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.inventory import Inventory, name_of, take_inventory
from transect.domain.paths import ROOT, StudyPaths
from transect.domain.record import raw_record
from transect.engine.claim import Claim
from transect.engine.plan_files import planned_cells, planned_study

# What `exports.json` calls the files of a crate beside its metadata.
_NAME = "ro-crate"


@dataclass(kw_only=True)
class CrateVerdict:
    """Where a folder is not what its crate says, by relative path.

    `unsealed` are files that the crate names without a checksum.
    """

    files: int = 0
    missing: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    unsealed: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every file is there as it was, and no other."""
        return not (self.missing or self.changed or self.added or self.unsealed)


def write_crate(paths: StudyPaths) -> tuple[Path, Inventory]:
    """Write `ro-crate-metadata.json` of everything below the study's folder; return it and what is in it.

    Raises BadInput while a run holds the results, where there is no record, and for metadata there that
    somebody else wrote.
    """
    from transect.report import crate
    from transect.report.crate import METADATA, NOT_IN_CRATE, README, Described, readme
    from transect.report.formats import Contents
    from transect.report.writing import put

    folder = paths.folder.resolve()
    file = folder / METADATA
    if Claim(folder.parent, paths.study).held_by_another():
        raise BadInput(f"{folder.parent}: a run holds these results: its files still change")
    _refuse_foreign(file)
    # A record that is damaged is a file as any other; `transect verify` names it.
    records = list(_records(folder))
    if not records:
        raise BadInput(f"{folder}: no records there, expected those of a study that has run")
    try:
        study = planned_study(paths)
        title = study.title or study.name
    except BadInput:
        title = paths.study
    there = {f"{one['stage']}/{one['cell_id']}" for one in records}
    about = Described(
        study=paths.study, title=title, records=records, waiting=len((planned_cells(paths) or {}).keys() - there)
    )
    files = {README: readme(about).encode("utf-8", "replace"), **_workflow()}
    put(folder, _NAME, "", Contents(files=files), state="")
    inventory = take_inventory(folder, NOT_IN_CRATE.__contains__)
    write_atomic(file, crate.crate_text(crate.crate_of(about, inventory)))
    return file, inventory


def _records(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.glob("*/*~*/record.json")):
        try:
            record = raw_record(path)
        except BadInput:
            continue
        if (record.get("stage"), record.get("cell_id")) == path.parts[-3:-1]:
            found.append(record)
    return found


def _workflow() -> dict[str, bytes]:
    """Return the workflow's files, as they are now, by their path in the crate."""
    rules = sorted((ROOT / "workflow" / "rules").glob("*.smk"))
    return {
        "workflow/Snakefile": (ROOT / "Snakefile").read_bytes(),
        **{f"workflow/rules/{path.name}": path.read_bytes() for path in rules},
    }


def _refuse_foreign(file: Path) -> None:
    """Raise BadInput for metadata that are not ours: they may hold what a person typed."""
    if not file.exists():
        return
    try:
        graph = _graph(file)
    except BadInput:
        graph = {}
    root = graph.get("./", {})
    if not str(root.get("description", "")).startswith("Results of the study "):
        raise BadInput(f"{file}: written by somebody else, or damaged: move it away first")


def _graph(file: Path) -> dict[str, dict[str, Any]]:
    """Return a crate's entities by id. Raises BadInput for what is no crate, or names one id twice."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        entities: dict[str, dict[str, Any]] = {}
        for entity in content["@graph"]:
            if not isinstance(entity["@id"], str):
                raise BadInput(f"{file}: no readable crate: {entity['@id']!r} is no @id")
            if entity["@id"] in entities:
                raise BadInput(f"{file}: no readable crate: {entity['@id']} is in it twice")
            entities[entity["@id"]] = entity
    except BadInput:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{file}: no readable crate: {type(error).__name__}: {error}") from None
    return entities


def check_crate(folder: Path) -> CrateVerdict | None:
    """Hold every file below `folder` to the crate there; None where there is none and never was.

    Reads everything. Raises BadInput for metadata that cannot be read, or that name a file outside the folder.
    """
    from transect.report.crate import METADATA, NOT_IN_CRATE, not_in_crate
    from transect.report.writing import noted_exports

    file = folder / METADATA
    if not file.exists():
        # Its other files are noted before it is written: without it, it is half written or was removed.
        return CrateVerdict(missing=[METADATA]) if _NAME in noted_exports(folder) else None
    told, links = _told(file)
    found = take_inventory(folder.resolve(), NOT_IN_CRATE.__contains__)
    verdict = CrateVerdict(files=len(told))
    for name, checksum in told.items():
        if name in found.others:
            verdict.changed.append(f"{name} ({found.others[name]})")
        elif name not in found.files:
            verdict.missing.append(name)
        elif checksum is None:
            verdict.unsealed.append(name)
        elif found.files[name].sha256 != checksum:
            verdict.changed.append(name)
    for name, what in links.items():
        if name not in found.others and name not in found.files:
            verdict.missing.append(name)
        elif name not in found.others or not_in_crate(found.others[name]) != what:
            verdict.changed.append(name)
    named = told.keys() | links.keys()
    verdict.added = sorted(
        [name for name in found.files if name not in named]
        + [f"{name} ({what})" for name, what in found.others.items() if name not in named]
    )
    return verdict


def _told(file: Path) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return the files of a crate with their checksums, and what it says of links and the like."""
    from transect.report.crate import NOT_A_FILE

    told: dict[str, str | None] = {}
    links: dict[str, str] = {}
    for uri, entity in _graph(file).items():
        what = str(entity.get("description", ""))
        is_link = not _is_file(entity) and what.startswith(NOT_A_FILE)
        if "://" in uri or uri.startswith("#") or not (_is_file(entity) or is_link):
            continue  # of the web, or a thing that is no file
        name = name_of(uri)
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise BadInput(f"{file}: names {uri}, which is outside the folder")
        if name in told or name in links:
            raise BadInput(f"{file}: no readable crate: {name} is in it twice")
        if is_link:
            links[name] = what
        else:
            checksum = entity.get("sha256")
            told[name] = checksum if isinstance(checksum, str) else None
    return told, links


def _is_file(entity: Mapping[str, Any]) -> bool:
    kinds = entity.get("@type")
    return "File" in (kinds if isinstance(kinds, list) else [kinds])
