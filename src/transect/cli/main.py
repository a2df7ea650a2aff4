"""`transect`: the command line."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from transect import __version__
from transect.domain.errors import Interruption, say_fault
from transect.domain.owner import hear_children
from transect.domain.terminal import printable, say

# Commands by the module of `transect.cli` that has their function, each with what the list of commands says of it.
COMMANDS: dict[str, dict[str, str]] = {
    "init": {"init": "Write a folder for studies of your own, fit for this machine"},
    "listing": {"list": "List every name that a study can use"},
    "study": {
        "check": "Validate a study; list its cells, and which are skipped",
        "why": "Say which cells would run again, and why",
        "run": "Run a study, or some cells of it",
    },
    "results": {
        "status": "Count the records; list what failed or was skipped",
        "retry": "Run the failed cells again",
        "reset": "Delete failed records, so that the next run makes them",
        "clean": "Remove cells that the study no longer has, or old environments",
        "report": "Make the report from the records that are there",
    },
    "verify": {
        "verify": "Check every record and file of a study",
        "crate": "Describe the results for others: an RO-Crate",
    },
    "watch": {"watch": "Follow a study while it runs, from any host"},
    "pack": {
        "pack": "Put a study's results into one checked file",
        "unpack": "Check such a file, and make the folder of its study",
    },
    "replicate": {"replicate": "Decide a published work's claims by what this machine can run"},
    "compare": {"compare": "Compare results of systems, dates or versions, or other tools' samples"},
    "history": {"history": "Follow a study over its runs"},
    "query": {"query": "Ask the records of many studies by SQL"},
    "fetch_data": {"fetch-data": "Fetch a published data set, checked, with its licence"},
    "manifest": {"manifest": "Write what is in a folder of data, or check that it still is"},
    "logs": {"ingest": "Read logs of benchmarks: their metrics, validated"},
    "doctor": {"doctor": "Show what this machine offers, and what is missing"},
    "where": {"where": "Print the folders that transect reads and writes"},
    "plan": {"plan": "Say how to divide a training among ranks", "train": "Plan a training and run it, in one call"},
    "launch": {"launch": "Start any framework's ranks, in a batch script"},
    "container": {"image": "Make the image of an environment"},
    "conda": {"conda": "Print an environment's pins as a file for conda"},
    "conformance": {"conformance": "Run ONNX's own operator tests through a runner"},
    "elsewhere": {
        "predict": "Predict the likeliest owners of new tickets",
        "export-step": "Export a training step as ONNX files",
    },
    "check_export": {"check-export": "Say whether an ONNX file gives a module's outputs"},
    "new": {"new": "Write a plug-in to begin with, and its test"},
    "check_plugin": {"check-plugin": "Ask a plug-in what the project's own are asked"},
}
_MODULES = {name: module for module, names in COMMANDS.items() for name in names}


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is asked for: `transect launch` needs no statistics."""

    def __getitem__(self, name: str) -> Any:
        module = importlib.import_module(f"transect.cli.{_MODULES[name]}")
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        word = name.replace("-", "_")
        # `list` is a word of Python's.
        one.command(name)(getattr(module, word, None) or getattr(module, f"{word}_"))
        return typer.main.get_command(one)

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Group(TyperGroup):
    """`transect`, which lists its commands without importing them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names, in the order of the table."""
        return list(_MODULES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what the table says of each."""
        with formatter.section("Commands"):
            formatter.write_dl([row for names in COMMANDS.values() for row in names.items()])


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure deep learning across frameworks, node counts and runtimes. "
    "`transect run STUDY` runs a whole study; `transect COMMAND --help` explains a command.",
)


def _version(show: bool) -> None:
    if show:
        say(f"transect {__version__}", to=sys.stdout)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", "-V", callback=_version, is_eager=True)] = False,
) -> None:
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
