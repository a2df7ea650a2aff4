"""Commands on results: count, retry, clean, report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from transect.cli.output import Json, new_table, print_table
from transect.domain.errors import BadInput

__all__ = ["clean", "report", "retry", "status"]

ResultFolder = Annotated[Path, typer.Argument(help="folder of one study, e.g. results/quick")]
DryRun = Annotated[bool, typer.Option(help="only say what would be deleted")]


def _planned(folder: Path) -> dict[str, str] | None:
    from transect.domain.paths import StudyPaths
    from transect.execution.plan_files import planned_cells

    return planned_cells(StudyPaths(results=folder.parent, study=folder.name))


def _records(folder: Path) -> tuple[list[Any], list[str]]:
    """Return the records below a folder and what could not be read.

    Raises BadInput when there is none.
    """
    from transect.domain.record import read_record

    paths = sorted(folder.glob("*/*/record.json"))
    if not paths:
        raise BadInput(f"{folder}: no records there, expected a folder such as results/quick")
    records, problems = [], []
    for path in paths:
        try:
            records.append(read_record(path))
        except BadInput as error:
            problems.append(str(error))
    return records, problems


def status(folder: ResultFolder, as_json: Json = False) -> None:
    """Count a study's records and list those that failed or were skipped, with cause.

    Cells that the study no longer has are counted apart.
    Example: transect status results/quick
    """
    records, problems = _records(folder)
    planned = _planned(folder)
    asked = [r for r in records if planned is None or f"{r.stage}/{r.cell_id}" in planned]
    counts = {s: sum(r.status == s for r in asked) for s in ("ok", "failed", "skipped")}
    waiting = 0 if planned is None else len(planned) - len(asked)
    bad = [
        {"stage": r.stage, "cell": r.cell_id, "status": r.status.value,
         "cause": r.cause.value, "message": r.message}
        for r in asked if r.cause is not None
    ]  # fmt: skip
    earlier = len(records) - len(asked)
    if as_json:
        print(json.dumps({"counts": counts, "cells": bad, "waiting": waiting,
                          "earlier": earlier, "problems": problems}, indent=1))  # fmt: skip
        return
    if bad:
        table = new_table("status", "cause", "stage", "cell", "message")
        for row in sorted(bad, key=lambda one: one["status"]):
            cells = (row[k] for k in ("status", "cause", "stage", "cell", "message"))
            table.add_row(*cells)
        print_table(table)
    for problem in problems:
        print(problem)
    parts = [f"{count} {name}" for name, count in counts.items()]
    parts += [f"{waiting} without a record"] if waiting else []
    parts += [f"{earlier} earlier cells that the study no longer has"] if earlier else []
    print(", ".join(parts))


def retry(
    folder: ResultFolder,
    skipped: Annotated[bool, typer.Option(help="delete skipped records too")] = False,
    dry_run: DryRun = False,
) -> None:
    """Delete the failed records, so that the next run makes just those (and what needs them).

    Environments that could not be built are forgotten too.
    Example: transect retry results/quick && make report
    """
    wanted = ("failed", "skipped") if skipped else ("failed",)
    records, problems = _records(folder)
    gone = [r for r in records if r.status in wanted]
    for record in gone:
        print(f"{'would delete' if dry_run else 'deleted'} {record.stage}/{record.cell_id}")
        if not dry_run:
            (folder / record.stage / record.cell_id / "record.json").unlink()
    for problem in problems:
        print(problem)
    for stamp in (folder.parent / "environments").glob("*.json"):
        try:
            built = json.loads(stamp.read_text())["status"] == "ok"
        except (OSError, ValueError, KeyError, TypeError):
            built = False
        if not built and not dry_run:
            stamp.unlink()
    print(f"{len(gone)} records")


def clean(folder: ResultFolder, dry_run: DryRun = False) -> None:
    """Remove the cells that the study no longer has, as it was planned by its last run.

    Example: transect clean results/quick --dry-run
    """
    planned = _planned(folder)
    if planned is None:
        raise BadInput(f"{folder}: no plan.json there, expected a folder such as results/quick")
    gone = 0
    for path in sorted(folder.glob("*/*/")):
        stage, cell_id = path.parent.name, path.name
        # A cell's folder and nothing else: ids end in a hash.
        if "~" not in cell_id or stage in ("specs", "blocks") or path.is_symlink():
            continue
        if f"{stage}/{cell_id}" not in planned:
            print(f"{'would remove' if dry_run else 'removed'} {stage}/{cell_id}")
            gone += 1
            if not dry_run:
                shutil.rmtree(path)
    print(f"{gone} cells that the study no longer has")


def report(
    study: Annotated[str, typer.Argument(help="a study's name or file")] = "quick",
    results: Annotated[Path, typer.Option(help="folder of all results")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Make the report from the records that are there, without running any cell.

    Example: transect report quick
    """
    from transect.domain.paths import StudyPaths
    from transect.execution.make_report import make_report
    from transect.planning.study import find_study, load_study

    file = find_study(study)
    paths = StudyPaths(results=results, study=load_study(file).name)
    if not paths.folder.is_dir():
        raise BadInput(f"{paths.folder}: no results of this study yet: run `make report`")
    summary = make_report(file, results)
    print(json.dumps(summary, indent=1) if as_json else paths.report)
