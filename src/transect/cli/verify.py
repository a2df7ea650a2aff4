"""`transect verify`: whether results are what was written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import Json, add_row, new_table, print_lines, print_table
from transect.domain.errors import BadInput

__all__ = ["verify"]


def verify(
    study: Annotated[str, typer.Argument(help="a study's name or file, or its folder of results")],
    results: Annotated[Path, typer.Option(help="folder of all results")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Check all records of a study; exit code 1 when one does not hold, each of these named.

    A record's own checksum, those of all files beside it, and whether what it was made from is still
    the same. It reads everything, and changes nothing; `make report` makes again what is damaged.
    Example: transect verify quick
    """
    from transect.domain.paths import StudyPaths
    from transect.execution.plan_files import study_file
    from transect.execution.verify import verify_records
    from transect.planning.study import find_study, load_study

    folder = Path(study)
    if folder.is_dir():
        paths = StudyPaths(results=folder.resolve().parent, study=folder.resolve().name)
        origin = study_file(paths)
        if origin is not None and origin.is_file():
            load_study(origin)  # for the stages of its plug-ins
    else:
        paths = StudyPaths(results=results, study=load_study(find_study(study)).name)
    verdicts = list(verify_records(paths))
    if not verdicts:
        raise BadInput(f"{paths.folder}: no records there, expected those of a study that has run")
    told = [one for one in verdicts if one.wrong or one.note]
    wrong = sum(bool(one.wrong) for one in verdicts)
    unsealed = sum(bool(one.note) for one in verdicts)
    if as_json:
        counts = {"records": len(verdicts), "wrong": wrong, "without_checksum": unsealed}
        print(json.dumps(counts | {"cells": [asdict(one) for one in told]}, indent=1))
    else:
        if told:
            table = new_table("stage", "cell", "what does not hold")
            for one in told:
                add_row(table, one.stage, one.cell, "; ".join(filter(None, (one.wrong, one.note))))
            print_table(table)
        more = f", {unsealed} have no checksum of their own" if unsealed else ""
        print_lines(f"{len(verdicts)} records, {wrong} of them do not hold{more}")
    if wrong:
        raise typer.Exit(1)
