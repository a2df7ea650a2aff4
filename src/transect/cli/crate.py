"""Writes the RO-Crate metadata of a study's folder, and checks the folder against it."""

from __future__ import annotations

import json
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
from transect.report.engine.crate import (
    METADATA,
    NOT_A_FILE,
    NOT_IN_CRATE,
    README,
    Described,
    crate_of,
    crate_text,
    not_in_crate,
    readme,
)

# What `exports.json` calls the files of a crate beside its metadata.
_NAME = "ro-crate"


@dataclass(kw_only=True)
class CrateVerdict:
    """Where a folder differs from its crate, by relative path.

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
    """Write `ro-crate-metadata.json` of everything below the study's folder; return it and what is in it."""
    from transect.report.engine.export import put
    from transect.report.engine.formats import Contents

    folder = paths.folder.resolve()
    file = folder / METADATA
    if Claim(folder.parent, paths.study).held_by_another():
        raise BadInput(f"{folder.parent}: a run is using these results: its files still change")
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
    there = {f"{record['stage']}/{record['cell_id']}" for record in records}
    about = Described(
        study=paths.study, title=title, records=records, waiting=len((planned_cells(paths) or {}).keys() - there)
    )
    files = {README: readme(about).encode("utf-8", "replace"), **_workflow()}
    put(folder, _NAME, "", Contents(files=files), state="")
    inventory = take_inventory(folder, NOT_IN_CRATE.__contains__)
    write_atomic(file, crate_text(crate_of(about, inventory)))
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
        "workflow/Snakefile": (ROOT / "workflow" / "Snakefile").read_bytes(),
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
    """Return a crate's entities by id. Raises BadInput for what is no crate, or has an id twice."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = {str(entity["@id"]): entity for entity in content["@graph"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{file}: no readable crate: {type(error).__name__}: {error}") from None
    if len(found) < len(content["@graph"]):
        raise BadInput(f"{file}: no readable crate: an @id is in it twice")
    return found


def check_crate(folder: Path) -> CrateVerdict | None:
    """Compare every file below `folder` with the crate there; None where there is none and never was.

    Reads everything. Raises BadInput for metadata that cannot be read, or that name a file outside the folder.
    """
    from transect.report.engine.export import noted_exports

    file = folder / METADATA
    if not file.exists():
        # Its other files are noted before it is written: without it, it is half written or was removed.
        return CrateVerdict(missing=[METADATA]) if _NAME in noted_exports(folder) else None
    described = _described(file)
    inventory = take_inventory(folder.resolve(), NOT_IN_CRATE.__contains__)
    others = {name: not_in_crate(what) for name, what in inventory.others.items()}
    found = {name: facts.sha256 for name, facts in inventory.files.items()} | others
    files = {name for name, checksum in described.items() if checksum is None or not checksum.startswith(NOT_A_FILE)}
    changed = [name for name, checksum in described.items() if name in found and checksum not in (None, found[name])]
    # What a file became, where it is none any more.
    became = {name: f"{name} ({inventory.others[name]})" for name in files & others.keys()}
    return CrateVerdict(
        files=len(files),
        missing=[name for name in described if name not in found],
        changed=[became.get(name, name) for name in changed],
        added=sorted(
            [name for name in inventory.files if name not in described]
            + [f"{name} ({what})" for name, what in inventory.others.items() if name not in described]
        ),
        unsealed=[name for name, checksum in described.items() if checksum is None and name in found],
    )


def _described(file: Path) -> dict[str, str | None]:
    """Return what a crate says of each file, its checksum, and of each link or the like."""
    described: dict[str, str | None] = {}
    for uri, entity in _graph(file).items():
        what, kinds = str(entity.get("description", "")), entity.get("@type")
        is_file = "File" in (kinds if isinstance(kinds, list) else [kinds])
        if "://" in uri or uri.startswith("#") or not (is_file or what.startswith(NOT_A_FILE)):
            continue  # of the web, or a thing that is no file
        name = name_of(uri)
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise BadInput(f"{file}: names {uri}, which is outside the folder")
        if name in described:
            raise BadInput(f"{file}: no readable crate: {name} is in it twice")
        checksum = entity.get("sha256") if is_file else what
        described[name] = checksum if isinstance(checksum, str) else None
    return described
