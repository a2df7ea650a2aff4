"""`transect check-plugin`: whether a plug-in does what its kind has to do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import Json, print_lines
from transect.domain.errors import BadInput
from transect.domain.terminal import say


def know_plugins(study: str | None, plugins: Path | None) -> Path | None:
    """Make the plug-ins of a folder and of a study known; return the study's file. Raises BadInput."""
    from transect.domain.registry import PLUGINS_VARIABLE

    if plugins is not None:
        if not plugins.is_dir():
            raise BadInput(f"--plugins {plugins}: no such folder")
        known = [part for part in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if part]
        os.environ[PLUGINS_VARIABLE] = os.pathsep.join(dict.fromkeys([*known, str(plugins.resolve())]))
    from transect.planning.study import find_study, load_study

    file = find_study(study) if study is not None else None
    if file is not None:
        load_study(file)
    return file


def check_plugin(
    kind: Annotated[str, typer.Argument(help="framework, strategy, runtime, parser, …")],
    name: Annotated[str, typer.Argument(help="the name by which it is registered")],
    study: Annotated[
        str | None, typer.Option(help="a study's name or file: its `plugins` are taken, and a stage runs in it")
    ] = None,
    plugins: Annotated[Path | None, typer.Option(help="a plug-in folder")] = None,
    log: Annotated[
        Path | None, typer.Option(help="of a parser: a log of its benchmark, whole and without a fault")
    ] = None,
    run: Annotated[bool, typer.Option("--run/--no-run", help="also let it work in a tiny study")] = True,
    as_json: Json = False,
) -> None:
    """Check one plug-in as the project's own are checked: a line for each check, and exit code 1 if one fails.

    Its answers are checked, then it runs in a tiny study in its own environment, which is built if missing: a framework
    and a strategy train beside the float64 reference, a runtime serves an exported model, a dataset is prepared, a
    parser reads `--log`. Example: transect check-plugin framework my-framework --plugins my/plugins
    """
    file = know_plugins(study, plugins)
    from transect.cli.plugin_checks import answers, check_log, kind_of
    from transect.cli.plugin_runs import runs
    from transect.cli.rule_checks import Check

    checks: list[Check] = []

    def tell(more: Iterable[Check]) -> None:
        for check in more:
            checks.append(check)
            ok = f"ok    {check.what}: {check.given}"
            if not as_json:
                print_lines(
                    ok if check.holds else f"FAIL  {check.what}: expected {check.expected}, given {check.given}"
                )

    tell(answers(kind, name))
    if log is not None:
        if kind != "parser" or not log.is_file():
            raise BadInput(f"--log {log}: expected the file of a log, and a parser")
        tell(check_log(name, log))
    if run and kind_of(kind).runs:
        if all(check.holds for check in checks):
            say("a tiny study runs now; environments that are not there are built first")
            tell(runs(kind, name, file))
        else:
            say("no study runs before these checks hold")
    failed = sum(not check.holds for check in checks)
    if as_json:
        reported = [asdict(check) | {"expected": str(check.expected), "given": str(check.given)} for check in checks]
        print(json.dumps(reported, indent=1))
    else:
        print_lines(f"{kind} '{name}': {failed} of {len(checks)} checks failed")
    if failed:
        raise typer.Exit(1)
