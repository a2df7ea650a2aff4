"""`transect`: the command line."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from transect import __version__
from transect.cli import study
from transect.cli.check_plugin import check_plugin
from transect.cli.compare import compare
from transect.cli.conformance import conformance
from transect.cli.container import image
from transect.cli.elsewhere import export_step, predict
from transect.cli.history import history
from transect.cli.init import init
from transect.cli.launch import launch
from transect.cli.listing import list_
from transect.cli.logs import ingest
from transect.cli.new import new
from transect.cli.output import Json, print_lines, print_table
from transect.cli.plan import plan, train
from transect.cli.results import clean, report, reset, retry, status
from transect.cli.verify import crate, verify
from transect.domain.errors import Interruption, say_fault
from transect.domain.terminal import printable
from transect.launch.processes import hear_children

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure deep learning across frameworks, node counts and runtimes. "
    "The pipeline itself runs with `make report` or `snakemake --profile profiles/local`.",
)


def doctor(
    system: Annotated[str | None, typer.Option(help="check this system file against Slurm")] = None,
    results: Annotated[Path, typer.Option(help="folder that every node has to see")] = Path("results"),
    wait: Annotated[float, typer.Option(help="seconds that a test job may take to start")] = 120,
    as_json: Json = False,
) -> None:
    """Show what this machine offers, and what is missing for which rows.

    Cores, memory, MPI, frameworks, runtimes, toolchains, GPU, Slurm. With --system: whether Slurm has what the system
    file says, with two short jobs on its nodes, and what to change; exit code 1 when something is wrong. Example:
    transect doctor --system config/systems/mine.yaml
    """
    from transect.cli.doctor import examine

    if system is None:
        facts = examine()
    else:
        from transect.adapters.slurm.doctor import examine_system
        from transect.domain.strict_yaml import load_model
        from transect.domain.system import System
        from transect.planning.study import find_system

        facts = examine_system(load_model(find_system(system), System), results, wait)
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        for title, rows in facts.items():
            print_table((title, "", ""), [(row["name"], row["state"], row["detail"]) for row in rows])
            print_lines("")
    if any(row["state"] == "wrong" for rows in facts.values() for row in rows):
        raise typer.Exit(1)


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(study.check, study.why, study.run),
    *(status, retry, reset, clean, verify, report, crate, compare, history, ingest),
    *(doctor, plan, train, launch, image, conformance, predict, export_step, check_plugin, list_, new, init),
)
for command in _COMMANDS:
    app.command(command.__name__.strip("_").replace("_", "-"))(command)


def _version(show: bool) -> None:
    if show:
        print_lines(f"transect {__version__}")
        raise typer.Exit


@app.callback()
def _options(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False) -> None:
    pass


def run() -> NoReturn:
    """Run the command line; what a person can mend is one message and an exit code."""
    hear_children()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character shows its number, and the command goes on.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
        if sys.stdout is not None:  # as it is where it was closed
            sys.stdout.flush()
    except Interruption as end:
        sys.exit(end.code)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        _nobody_reads()
    except SystemExit as end:
        # As rich and click end a command whose output nobody reads on.
        if isinstance(end.__context__, BrokenPipeError):
            _nobody_reads()
        # The command line's own way to end; anybody else's is a plug-in's, and no word of it.
        if _module_of(end).partition(".")[0] in ("typer", "click"):
            raise
        sys.exit(say_fault(end))
    except Exception as error:
        sys.exit(_say_usage(error) if hasattr(error, "show") else say_fault(error))
    sys.exit(code or 0)


def _nobody_reads() -> NoReturn:
    """End in silence, with the code that a shell tells of a process that SIGPIPE ended."""
    # Or Python complains once more when it flushes at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _say_usage(error: Any) -> int:
    """Say what is wrong with the arguments, as typer does; they may be names of files."""
    if type(error).__name__ != "NoArgsIsHelpError":
        error.message = printable(str(error.message))
    error.show()
    return int(error.exit_code)


def _module_of(error: BaseException) -> str:
    """Return the name of the module that raised."""
    name = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
    return name
