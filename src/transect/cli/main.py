"""`transect`: the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from transect import __version__
from transect.cli import study
from transect.cli.launch import launch
from transect.cli.output import Json, new_table, print_table
from transect.cli.results import clean, report, retry, status
from transect.cli.verify import verify
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

for command in (study.check, study.why, study.run, status, retry, clean, verify, report):
    app.command()(command)


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
        from transect.planning.study import find_system

        facts = examine_system(load_model(find_system(system), System), results, wait)
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        for title, rows in facts.items():
            table = new_table(title, "", "")
            for row in rows:
                table.add_row(row["name"], row["state"], row["detail"])
            print_table(table)
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
