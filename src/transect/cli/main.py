"""`transect`: check a study, see and retry its failures, read logs, make the report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from transect import __version__
from transect.cli.launch import launch
from transect.domain.errors import BadInput, TransectError

__all__ = ["app", "run"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure deep learning across frameworks, node counts and runtimes. "
    "The pipeline itself runs with `make report` or `snakemake --profile profiles/local`.",
)

Json = Annotated[bool, typer.Option("--json", help="print JSON for a script")]
ResultFolder = Annotated[Path, typer.Argument(help="folder of one study, e.g. results/quick")]


def _print(table: Table) -> None:
    # A pipe has no width: do not cut ids there.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


@app.command()
def check(
    study: Annotated[str, typer.Argument(help="a study's name or file")],
    system: Annotated[str, typer.Option(help="a system's name or file")] = "laptop",
    as_json: Json = False,
) -> None:
    """Validate a study; print the cells it would run, and which would be skipped and why.

    Shows the same messages as a run. Exit code 2 when the study cannot be used.
    Example: transect check config/studies/quick.yaml
    """
    from transect.planning.blocks import make_blocks
    from transect.planning.expand import reason_to_skip
    from transect.planning.plan import find_study, find_system, make_plan

    plan = make_plan(find_study(study), find_system(system), Path("results"))
    # On a cluster: what no node can hold is refused here too.
    blocks = make_blocks(plan) if plan.system.scheduler != "none" else []
    rows = [
        {"stage": p.cell.stage, "cell": p.id, "environment": p.environment or "driver",
         "skip": reason_to_skip(p.cell)}
        for p in plan
    ]  # fmt: skip
    if as_json:
        print(json.dumps({"study": plan.study.name, "cells": rows}, indent=1))
        return
    table = _table("stage", "cell", "environment", "would be skipped because")
    for row in rows:
        table.add_row(row["stage"], row["cell"], row["environment"], row["skip"] or "")
    _print(table)
    skipped = sum(row["skip"] is not None for row in rows)
    print(f"{plan.file}: valid, {len(rows)} cells, {skipped} of them would be skipped")
    if blocks:
        minutes = sum(block.minutes * block.shape.nodes for block in blocks)
        print(f"{len(blocks)} jobs, which ask for {minutes / 60:.1f} node-hours at most")


def _records(folder: Path) -> list[Any]:
    from transect.domain.record import read_record

    paths = sorted(folder.glob("*/*/record.json"))
    if not paths:
        raise BadInput(f"{folder}: no records there, expected a folder such as results/quick")
    return [read_record(path) for path in paths]


@app.command()
def status(folder: ResultFolder, as_json: Json = False) -> None:
    """Count a study's records and list those that failed or were skipped, with cause.

    Example: transect status results/quick
    """
    records = _records(folder)
    counts = {s: sum(r.status == s for r in records) for s in ("ok", "failed", "skipped")}
    bad = [
        {"stage": r.stage, "cell": r.cell_id, "status": r.status.value,
         "cause": r.cause.value, "message": r.message}
        for r in records if r.cause is not None
    ]  # fmt: skip
    if as_json:
        print(json.dumps({"counts": counts, "cells": bad}, indent=1))
        return
    if bad:
        table = _table("status", "cause", "stage", "cell", "message")
        for row in sorted(bad, key=lambda one: one["status"]):
            cells = (row[k] for k in ("status", "cause", "stage", "cell", "message"))
            table.add_row(*cells)
        _print(table)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


@app.command()
def retry(
    folder: ResultFolder,
    skipped: Annotated[bool, typer.Option(help="delete skipped records too")] = False,
    dry_run: Annotated[bool, typer.Option(help="only say what would be deleted")] = False,
) -> None:
    """Delete the failed records, so that the next run makes just those (and what needs them).

    Environments that could not be built are forgotten too.
    Example: transect retry results/quick && make report
    """
    wanted = ("failed", "skipped") if skipped else ("failed",)
    gone = [r for r in _records(folder) if r.status in wanted]
    for record in gone:
        print(f"{'would delete' if dry_run else 'deleted'} {record.stage}/{record.cell_id}")
        if not dry_run:
            (folder / record.stage / record.cell_id / "record.json").unlink()
    for stamp in (folder.parent / "environments").glob("*.json"):
        if json.loads(stamp.read_text())["status"] != "ok" and not dry_run:
            stamp.unlink()
    print(f"{len(gone)} records")


@app.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="log files or folders")],
    output: Annotated[str, typer.Option("--format", help="table, json or csv")] = "table",
    benchmark: Annotated[str | None, typer.Option(help="do not guess: it is this one")] = None,
) -> None:
    """Read benchmark logs: what each file is, what it says, and whether to believe it.

    A file that nobody recognises is listed as `unknown`; nothing is dropped.
    Example: transect ingest logs/ --format json
    """
    from transect.hpc.ingest import ingest as read
    from transect.hpc.table import format_table, to_json, write_csv

    if output not in ("table", "json", "csv"):
        raise BadInput(f"--format {output!r}: expected table, json or csv")
    runs = read(paths, benchmark)
    if output == "csv":
        write_csv(runs, sys.stdout)
    else:
        print(to_json(runs) if output == "json" else format_table(runs))


@app.command()
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
    from transect.planning.plan import find_study, load_study

    file = find_study(study)
    paths = StudyPaths(results=results, study=load_study(file).name)
    if not paths.folder.is_dir():
        raise BadInput(f"{paths.folder}: no results of this study yet: run `make report`")
    summary = make_report(file, results)
    print(json.dumps(summary, indent=1) if as_json else paths.report)


@app.command()
def doctor(
    system: Annotated[str | None, typer.Option(help="check this system file against Slurm")] = None,
    results: Annotated[Path, typer.Option(help="folder that every node has to see")] = Path(
        "results"
    ),
    wait: Annotated[float, typer.Option(help="seconds that a test job may take to start")] = 120,
    as_json: Json = False,
) -> None:
    """Say what this machine offers, and what is missing for which rows.

    Cores, memory, MPI, frameworks, runtimes, toolchains, GPU, Slurm. With --system: whether
    Slurm has what the system file says, with two short jobs on its nodes, and what to change;
    exit code 1 when something is wrong.
    Example: transect doctor --system config/systems/mine.yaml
    """
    from transect.cli.doctor import examine

    if system is None:
        facts = examine()
    else:
        from transect.cli.cluster_doctor import examine_system
        from transect.domain.strict_yaml import load_model
        from transect.domain.system import System
        from transect.planning.plan import find_system

        facts = examine_system(load_model(find_system(system), System), results, wait)
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        for title, rows in facts.items():
            table = _table(title, "", "")
            for row in rows:
                table.add_row(row["name"], row["state"], row["detail"])
            _print(table)
            print()
    if any(row["state"] == "wrong" for rows in facts.values() for row in rows):
        raise typer.Exit(1)


app.command()(launch)


def _version(show: bool) -> None:
    if show:
        print(f"transect {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    pass


def run() -> NoReturn:
    """Run the command line; an error of ours is one message and its exit code."""
    try:
        app()
    except TransectError as error:
        print(f"transect: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.exit(0)
