"""`transect watch`: how a study stands, again and again, until it ends."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transect.cli.output import Json, print_lines
from transect.cli.places import results_of
from transect.domain.errors import BadInput
from transect.domain.terminal import printable

if TYPE_CHECKING:
    from transect.domain.paths import StudyPaths
    from transect.engine.watching import View

# A look takes at most this share of the time: there may be many records, on a slow file system.
_SHARE = 10
_MOST_RUNNING = 5


def watch(
    study: Annotated[str, typer.Argument(help="a study's name or file, or its folder of results")],
    results: Annotated[Path, typer.Option(help="folder of all results")] = Path("results"),
    system: Annotated[str | None, typer.Option(help="expect that it was planned for this one")] = None,
    once: Annotated[bool, typer.Option("--once", help="look once")] = False,
    every: Annotated[float, typer.Option(help="seconds from a look to the next")] = 5,
    as_json: Json = False,
) -> None:
    """Show how a study stands: cells done, running, failed, skipped and left, the last ones, time left, and its report so far.

    It reads files only, also from another host. Repeats until nothing runs any more, waits for a study that has not begun, and
    ends with 0 when all cells are done, 1 when the run died or stopped before. With --once, or --json, one look: 0.
    Example: transect watch quick
    """
    from transect.engine.watching import Watcher

    if not every > 0:
        raise BadInput(f"--every {every}: expected seconds, more than 0")
    paths = results_of(study, results)
    if system is not None:
        _check_system(paths, system)
    watcher = Watcher(paths)
    if as_json:
        print(json.dumps(asdict(watcher.look()), indent=1))
        return
    if once:
        print_lines(*_lines(watcher.look()))
        return
    last = None
    views = _views(watcher.look, every)
    if sys.stdout.isatty():  # else, as in a log, what is new
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False) as live:
            for last in views:
                live.update(Text("\n".join(map(printable, _lines(last)))), refresh=True)
    else:
        shown: list[str] = []
        for last in views:
            lines = _lines(last)
            if lines[:2] != shown[:2]:
                print_lines(*(line for line in lines if line not in shown))
                sys.stdout.flush()
                shown = lines
    raise typer.Exit(int(last is not None and last.state != "done"))


def _views(look: Callable[[], View], every: float) -> Iterator[View]:
    while True:
        begin = time.monotonic()
        view = look()
        yield view
        if not view.goes_on:
            return
        time.sleep(max(every, _SHARE * (time.monotonic() - begin)))


def _lines(view: View) -> list[str]:
    """Say a view in lines: its state, its counts, then all that is there to say."""
    lines = [f"{view.study}: {view.state}" + (f": {view.words}" if view.words else "")]
    if view.cells:
        counts = {"ok": view.ok, "failed": view.failed, "skipped": view.skipped, "running": len(view.running)}
        counts |= {"left": view.left} | ({"damaged": view.damaged} if view.damaged else {})
        lines.append(f"{view.cells} cells: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    if view.left_s is not None:
        minutes, seconds = divmod(round(view.left_s), 60)
        lines.append(f"about {minutes}:{seconds:02d} left, cells one after another")
    lines += [f"running: {cell}" for cell in view.running[:_MOST_RUNNING]]
    if len(view.running) > _MOST_RUNNING:
        lines.append(f"and {len(view.running) - _MOST_RUNNING} more")
    lines += ["the last cells that ended:", *(f"  {cell}" for cell in view.last)] if view.last else []
    if view.report is not None and view.report_age_s is not None:
        so_far = "" if view.state == "done" else " so far"
        lines.append(f"report{so_far}: {view.report}, made {_age(view.report_age_s)} ago")
    return lines


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _check_system(paths: StudyPaths, system: str) -> None:
    """Raise BadInput where a study was planned for another system than is expected."""
    from transect.engine.plan_files import system_file
    from transect.planning.study import find_system

    planned, expected = system_file(paths), find_system(system)
    if planned is not None and planned.resolve() != expected.resolve():
        raise BadInput(f"{paths.folder}: was planned for the system {planned}, expected {expected}")
