"""`transect verify`: whether results are what was written; `transect crate`: metadata that say so to others."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transect.cli.output import Json, print_lines, print_table
from transect.domain.errors import BadInput

if TYPE_CHECKING:
    from transect.cli.crate import CrateVerdict
    from transect.domain.paths import StudyPaths

Study = Annotated[str, typer.Argument(help="a study's name or file, or its folder of results")]
Results = Annotated[Path, typer.Option(help="folder of all results")]


def verify(study: Study, results: Results = Path("results"), as_json: Json = False) -> None:
    """Check all records of a study; exit code 1 when one is not valid, and each of these is named.

    A record's own checksum, those of all files beside it, and whether what it was made from is still
    the same; source files that were edited since are named, and no damage. Where there is an RO-Crate, every file of the folder: those that are missing, changed or added.
    It reads everything, and changes nothing; `make report` makes again what is damaged.
    Example: transect verify quick
    """
    from transect.cli.crate import check_crate
    from transect.engine.verify import verify_records

    paths = _paths(study, results)
    verdicts = list(verify_records(paths))
    sealed = check_crate(paths.folder)
    if not verdicts and sealed is None:
        raise BadInput(f"{paths.folder}: no records there, expected those of a study that has run")
    shown = [verdict for verdict in verdicts if verdict.wrong or verdict.note or verdict.edited]
    wrong = sum(bool(verdict.wrong) for verdict in verdicts)
    alone = sum(bool(verdict.note) for verdict in verdicts)
    if as_json:
        facts: dict[str, Any] = {"records": len(verdicts), "wrong": wrong, "cells": [asdict(cell) for cell in shown]}
        print(json.dumps(facts | {"crate": sealed and asdict(sealed)}, indent=1))
    else:
        if wrong:
            problems = [(found.stage, found.cell, found.wrong) for found in verdicts if found.wrong]
            print_table(("stage", "cell", "problem"), problems)
        more = f", {alone} could not be compared with their inputs" if alone else ""
        print_lines(f"{len(verdicts)} records, {wrong} of them not valid{more}")
        if names := sorted({name for verdict in verdicts for name in verdict.edited}):
            cells = sum(bool(verdict.edited) for verdict in verdicts)
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            print_lines(
                f"{cells} of them were made by another {names[0]}{others}: `transect why` names what runs again"
            )
        if sealed is not None:
            _say(sealed)
    if wrong or (sealed is not None and not sealed.holds):
        raise typer.Exit(1)


def crate(study: Study, results: Results = Path("results"), as_json: Json = False) -> None:
    """Describe a study's results for others: an RO-Crate with the checksum of every file.

    `ro-crate-metadata.json` in the folder names each file, each cell that made some, and what it took. From then on
    `transect verify` checks the folder against it. Make it last: what is written later counts as changed. Made again,
    it says what changed since. Example: transect crate quick
    """
    from transect.cli.crate import check_crate, write_crate

    paths = _paths(study, results)
    try:
        before = check_crate(paths.folder)
    except BadInput:
        before = None  # to write refuses what it must not take the place of
    file, inventory = write_crate(paths)
    total = sum(facts.size for facts in inventory.files.values())
    if as_json:
        facts_of_crate = {
            "file": str(file),
            "files": len(inventory.files),
            "bytes": total,
            "others": inventory.others,
            "before": before and asdict(before),
        }
        print(json.dumps(facts_of_crate, indent=1))
        return
    print_lines(f"{file}: {len(inventory.files)} files, {total / 1e6:.1f} MB")
    print_lines(*(f"  not in it: {name}: {what}" for name, what in inventory.others.items()))
    if before is not None and not before.holds:
        print_lines("changes since the crate before:")
        _say(before)


def _paths(study: str, results: Path) -> StudyPaths:
    """Return where a study's results are; its plug-ins' stages are known from then on."""
    from transect.domain.paths import StudyPaths
    from transect.engine.plan_files import study_file
    from transect.planning.study import find_study, load_study

    folder = Path(study)
    if not folder.is_dir():
        return StudyPaths(results=results, study=load_study(find_study(study)).name)
    paths = StudyPaths(results=folder.resolve().parent, study=folder.resolve().name)
    origin = study_file(paths)
    if origin is not None and origin.is_file():
        load_study(origin)  # for the stages of its plug-ins
    return paths


def _say(sealed: CrateVerdict) -> None:
    if not sealed.holds:
        rows = [(name, what) for what in ("missing", "changed", "added") for name in getattr(sealed, what)]
        rows += [(name, "has no checksum there") for name in sealed.unsealed]
        print_table(("file", "against ro-crate-metadata.json"), rows)
    print_lines(
        f"{sealed.files} files of the crate: {len(sealed.missing)} missing, {len(sealed.changed)} changed, "
        f"{len(sealed.added)} added"
    )
