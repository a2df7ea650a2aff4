"""The page docs/commands.md, from the command line itself: every command with what its `--help` says."""

from __future__ import annotations

from typing import Any

import typer

from transect.cli.main import COMMANDS, app

# Columns of a code block on the site and on code hosts, before it scrolls.
_WIDTH = 100
# Pages that tell more, by command.
_MORE = {
    "check": {"studies": "studies.md"},
    "check-export": {"what counts as faithful": "runtimes.md#is-my-export-faithful"},
    "check-plugin": {"adding one of each": "adding.md#how-it-is-checked"},
    "clean": {"environments that nothing needs": "adding.md#environments-that-nothing-needs"},
    "conda": {"where only conda is allowed": "sharing.md#where-only-conda-is-allowed"},
    "compare": {"comparing runs": "compare.md", "in CI": "ci/README.md"},
    "conformance": {"ONNX's own node tests": "runtimes.md#onnxs-own-node-tests"},
    "crate": {"RO-Crate": "export.md#ro-crate"},
    "doctor": {"on a cluster": "cluster.md"},
    "export-step": {"the portable training step": "portable-training-step.md"},
    "history": {"history": "compare.md#history"},
    "image": {"containers": "containers.md"},
    "ingest": {"benchmarks": "benchmarks.md"},
    "init": {"tutorial": "tutorial.md", "on a cluster": "cluster.md"},
    "launch": {"starting ranks": "launch.md"},
    "new": {"begin with one that works": "adding.md#begin-with-one-that-works"},
    "pack": {"one file": "export.md#one-file"},
    "plan": {"parallelism": "parallelism.md"},
    "predict": {"predict": "predict.md"},
    "query": {"query": "query.md"},
    "fetch-data": {"published data sets": "data.md"},
    "manifest": {"manifests": "data.md#manifests"},
    "replicate": {"published claims": "claims.md"},
    "report": {"export": "export.md"},
    "run": {"tutorial": "tutorial.md"},
    "train": {"your model": "your-model.md"},
    "unpack": {"one file": "export.md#one-file"},
    "watch": {"tutorial": "tutorial.md"},
    "where": {"where things are looked for": "install.md#where-things-are-looked-for"},
}
_ABOUT = """`transect COMMAND --help` prints the same. A study or system is a name or a file; where a script may read it there is `--json`.

The first command of a newcomer is [`init`](#init); the [tutorial](tutorial.md) goes from there to a decision."""
_EXIT_CODES = """## Exit codes

| exit code | `transect` | `snakemake` |
|---|---|---|
| 0 | done | the report is there; cells may have failed, it says which |
| 1 | a fault of ours, or what the command was to check does not hold: its help says so; `replicate`: a study did not run to its end | a job failed for reasons outside a cell, or `strict` and a cell failed |
| 2 | what you gave cannot be used; the message says why | study, system or config cannot be used |
| 3 | a program, library or environment is missing | |
| 4 | `compare`: something is worse; `check-export`: not faithful; `history --fail`: the last change of a series is for the worse | |
| 5 | `compare`: nothing is comparable or confirmed; `history`: fewer than two runs; `replicate`: nothing could be decided | |

`make` itself ends with 2 whatever went wrong in its commands."""


def commands_page(note: str) -> str:
    """Return docs/commands.md: a list of all commands, then what each says of itself."""
    parts = ["# Commands", note, _ABOUT, _list(), _EXIT_CODES]
    group: Any = typer.main.get_command(app)
    for name in _names():
        more = " · ".join(f"[{title}]({page})" for title, page in _MORE.get(name, {}).items())
        parts += [f"## {name}", _help(group, name), *([f"More: {more}."] if more else [])]
    return "\n\n".join(parts) + "\n"


def _names() -> list[str]:
    if unknown := _MORE.keys() - (names := [name for module in COMMANDS.values() for name in module]):
        raise SystemExit(f"generate-docs: no such command: {', '.join(sorted(unknown))}")
    return names


def _list() -> str:
    rows = [f"| [`{name}`](#{name}) | {said} |" for module in COMMANDS.values() for name, said in module.items()]
    return "\n".join(["| command | what |", "|---|---|", *rows])


def _help(group: Any, name: str) -> str:
    """Return what `--help` prints, in as many columns wherever this runs."""
    command = group.commands[name]
    context = command.context_class(
        command, info_name=f"transect {name}", terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    return f"```text\n{command.get_help(context).rstrip()}\n```"
