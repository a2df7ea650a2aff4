"""Commands on results: count, reset, retry, clean, report."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transect.cli.compare import check_outputs
from transect.cli.output import Json, print_lines, print_table
from transect.cli.study import plan_of, run_cells
from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.report.junit import Case, Ended
from transect.report.junit import junit as write_junit

if TYPE_CHECKING:
    from transect.analysis.load import CellState
    from transect.domain.paths import StudyPaths

ResultFolder = Annotated[Path, typer.Argument(help="folder of one study, e.g. results/quick")]
DryRun = Annotated[bool, typer.Option(help="only say what would be deleted")]
Failed = Annotated[bool, typer.Option(help="failed records, and those that cannot be read")]
Skipped = Annotated[bool, typer.Option(help="skipped records too")]

# What cannot be read is as good as failed.
_FAILED, _SKIPPED = {"failed", "unreadable"}, {"skipped"}
# What did not come to its end is no success either.
_BROKEN = {*_FAILED, "stopped"}


def _paths(folder: Path) -> StudyPaths:
    from transect.domain.paths import StudyPaths

    return StudyPaths(results=folder.resolve().parent, study=folder.resolve().name)


def _planned(folder: Path) -> dict[str, str] | None:
    from transect.engine.plan_files import planned_cells

    return planned_cells(_paths(folder))


def _states(folder: Path) -> list[CellState]:
    """Return how each cell of a study stands. Raises BadInput where there is no record at all."""
    from transect.analysis.load import cell_states
    from transect.engine.make_report import cell_keys

    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder, expected one such as results/quick")
    planned = _planned(folder)
    states = cell_states(folder, None if planned is None else cell_keys(planned))
    if not any(state.state != "waiting" for state in states):
        raise BadInput(f"{folder}: no records there, expected a folder such as results/quick")
    return states


def status(
    folder: ResultFolder,
    as_json: Json = False,
    junit: Annotated[Path | None, typer.Option(help="write JUnit's XML as well: a test for each cell")] = None,
) -> None:
    """Count a study's cells and list those that failed or were skipped, with cause.

    Cells that the study no longer has are counted apart. Example: transect status results/quick
    """
    check_outputs({"--junit": junit}, [folder])
    states = _states(folder)
    if junit is not None:
        write_atomic(junit, write_junit([(str(folder), list(_cases(states)))]))
    numbers = Counter(str(cell.state) for cell in states)
    counts = {name: numbers.pop(name, 0) for name in ("ok", "failed", "skipped")}
    bad = [
        {
            "stage": cell.stage,
            "cell": cell.cell,
            "status": str(cell.state),
            "cause": cell.cause,
            "message": cell.message,
        }
        for cell in states
        if cell.state not in ("ok", "waiting", "running", "earlier")
    ]
    if as_json:
        print(json.dumps({"counts": counts, "others": dict(numbers), "cells": bad}, indent=1))
        return
    if bad:
        columns = ("status", "cause", "stage", "cell", "message")
        bad.sort(key=lambda row: row["status"])
        print_table(columns, [[row[column] for column in columns] for row in bad])
    print_lines(", ".join(f"{count} {name}" for name, count in {**counts, **numbers}.items()))
    if numbers["earlier"]:
        print_lines("earlier: cells that the study no longer has; `transect clean` removes them")


def _cases(states: Iterable[CellState]) -> Iterator[Case]:
    """Yield a test case for each cell that the study has."""
    for cell in states:
        if cell.state == "earlier":
            continue
        ended = Ended.PASSED if cell.state == "ok" else Ended.FAILED if cell.state in _BROKEN else Ended.SKIPPED
        said = "" if ended is Ended.PASSED else ": ".join(filter(None, (cell.state, cell.cause, cell.message)))
        yield Case(group=cell.stage, name=cell.cell, ended=ended, kind=cell.cause or cell.state, said=said)


def _to_reset(folder: Path, states: set[str]) -> list[tuple[str, str]]:
    """Return the cells in one of these states whose records are the study's own, and say which others are left."""
    from transect.engine.ownership import why_not_own

    paths, planned, found = _paths(folder), _planned(folder), []
    for cell in _states(folder):
        if cell.state not in states:
            continue
        if left := why_not_own(paths, cell.stage, cell.cell, planned):
            print_lines(f"left {cell.stage}/{cell.cell}: {left}")
        else:
            found.append((cell.stage, cell.cell))
    return found


def reset(folder: ResultFolder, failed: Failed = True, skipped: Skipped = False, dry_run: DryRun = False) -> None:
    """Delete the failed records, so that the next run makes just those (and what needs them).

    Environments of the study that could not be built are forgotten too. Nothing else is touched, and nothing behind a link.
    Example: transect reset results/quick && make report
    """
    from transect.engine.ownership import failed_environments

    paths = _paths(folder)
    done = "would delete" if dry_run else "deleted"
    cells = _to_reset(folder, (_FAILED if failed else set()) | (_SKIPPED if skipped else set()))
    for stage, cell_id in cells:
        print_lines(f"{done} {stage}/{cell_id}")
        if not dry_run:
            paths.forget_record(stage, cell_id)
    stamps = failed_environments(paths)
    for stamp in stamps:
        print_lines(f"{done} environments/{stamp.name}")
        if not dry_run:
            stamp.unlink()
    print_lines(f"{len(cells)} records, {len(stamps)} environments that could not be built")


def retry(
    folder: ResultFolder,
    skipped: Skipped = False,
    dry_run: Annotated[bool, typer.Option(help="only say what would run")] = False,
) -> None:
    """Run the failed cells again, here, as the study was planned last; exit code 1 if one fails again.

    What takes from them runs with the next run of the whole study. Inside a scheduler's allocation only, where the system
    has one; outside of it `transect reset` and the next run do the same.
    Example: transect retry results/quick --dry-run
    """
    from transect.engine.plan_files import study_file, system_file

    paths = _paths(folder)
    wanted = _to_reset(folder, _FAILED | (_SKIPPED if skipped else set()))
    study, system = study_file(paths), system_file(paths)
    if study is None or system is None:
        raise BadInput(f"{paths.plan}: is not there or cannot be read; a run of the study writes it")
    plan = plan_of(str(study), str(system), paths.results)
    cells = [plan.cells[stage][cell] for stage, cell in wanted if cell in plan.cells.get(stage, {})]
    if dry_run or not cells:
        print_lines(*(f"would run {planned.cell.stage}/{planned.id}" for planned in cells), f"{len(cells)} cells")
    else:
        run_cells(plan, cells, force=True)


def clean(
    folder: Annotated[Path | None, typer.Argument(help="folder of one study, e.g. results/quick")] = None,
    dry_run: DryRun = False,
    environments: Annotated[bool, typer.Option(help="in place of cells: environments and images not in use")] = False,
    older_than: Annotated[float | None, typer.Option(help="environments: last used so many days ago, or more")] = None,
    larger_than: Annotated[str | None, typer.Option(help="environments: of this size or more, e.g. 500M or 2G")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="environments: remove them; else they are only listed")] = False,
) -> None:
    """Remove the cells that the study no longer has, as it was planned by its last run; or environments.

    A folder counts as a cell by its own record or spec. Nothing else is touched, and nothing behind a link.
    Example: transect clean results/quick --dry-run

    With --environments: list the environments and images under TRANSECT_ENVS that no definition (envs/NAME) makes as it is
    now, and with --yes remove them. What a running study uses or a build may need stays.
    Example: transect clean --environments --older-than 30
    """
    if environments:
        from transect.cli.clean_environments import clean_environments

        if folder is not None:
            raise BadInput(f"{folder}: --environments cleans those of TRANSECT_ENVS, and takes no folder of results")
        if yes and dry_run:
            raise BadInput("--yes removes and --dry-run does not: expected one of them")
        clean_environments(older_than, larger_than, remove_them=yes)
        return
    if folder is None:
        raise BadInput("nothing is named: expected a folder such as results/quick, or --environments")
    if yes or older_than is not None or larger_than is not None:
        raise BadInput("--yes, --older-than and --larger-than are for --environments")
    _clean_cells(folder, dry_run)


def _clean_cells(folder: Path, dry_run: bool) -> None:
    from transect.engine.ownership import why_not_own

    planned = _planned(folder)
    if planned is None:
        raise BadInput(
            f"{folder}: plan.json is not there or cannot be read, expected a folder such as results/quick; the study's "
            "next run writes it"
        )
    paths, gone = _paths(folder), 0
    for path in sorted(folder.glob("*/*~*/")):
        stage, cell_id = path.parent.name, path.name
        if f"{stage}/{cell_id}" in planned:
            continue
        if left := why_not_own(paths, stage, cell_id, planned):
            print_lines(f"left {stage}/{cell_id}: {left}")
            continue
        print_lines(f"{'would remove' if dry_run else 'removed'} {stage}/{cell_id}")
        gone += 1
        if not dry_run:
            shutil.rmtree(paths.cell(stage, cell_id))
    print_lines(f"{gone} cells that the study no longer has")


def report(
    study: Annotated[str, typer.Argument(help="a study's name or file, or its folder of results")] = "quick",
    results: Annotated[Path, typer.Option(help="folder of all results")] = Path("results"),
    logs: Annotated[Path | None, typer.Option(help="no study: logs of benchmarks below here")] = None,
    output: Annotated[Path, typer.Option(help="with --logs: the file to write")] = Path("logs-report/report.html"),
    limits: Annotated[str | None, typer.Option(help="with --logs: as `transect ingest`")] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="html (usual), markdown, latex-tables, paper, json, figures, …; may be repeated"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the report from the records that are there, without running any cell.

    Other formats than the page lie beside it; docs/export.md says what each holds.
    Example: transect report quick --format markdown, or: transect report --logs archive/
    """
    if logs is not None:
        from transect.cli.logs import logs_report

        if formats not in (None, ["html"]):
            raise BadInput("--format is for a study's report: that of --logs is a page")

        made = logs_report(logs, output, limits)
        print(json.dumps(made, indent=1)) if as_json else print_lines(str(output))
        return
    from transect.domain.paths import StudyPaths
    from transect.engine.make_report import write_report
    from transect.engine.plan_files import check_origin
    from transect.planning.study import find_study, load_study

    file = None if Path(study).is_dir() else find_study(study)
    if file is None:
        paths = _paths(Path(study))
    else:
        paths = StudyPaths(results=results, study=load_study(file).name)
        if not paths.folder.is_dir():
            raise BadInput(f"{paths.folder}: no results of this study yet: run `make report`")
        check_origin(paths, file)
    summary, written, older = write_report(file, paths, formats or ["html"])
    if as_json:
        listed = [{**asdict(export), "path": str(export.path)} for export in written]
        print(json.dumps({**summary, "written": listed, "older": older}, indent=1))
        return
    print_lines(*(text for word, text in summary["banner"].items() if word == "Edited"))
    for exported in written:
        print_lines(str(exported.path) + (f" ({exported.files} files)" if exported.files != 1 else ""))
        print_lines(*(f"  left out: {reason}" for reason in exported.left_out))
    print_lines(*(f"{name} is of older records: --format {name} writes it anew" for name in older))
