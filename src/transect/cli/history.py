"""`transect history`: many runs of one study over time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transect.cli.compare import NOTHING, WORSE, check_format, check_outputs, margin_of
from transect.cli.output import print_lines, print_sections
from transect.domain.errors import BadInput, unknown_name

if TYPE_CHECKING:
    from transect.analysis.history import History
    from transect.analysis.result_sets import ResultSet
    from transect.analysis.timelines import LeftOut


def history(
    folders: Annotated[list[Path], typer.Argument(help="result folders, or folders that hold some below them")],
    study: Annotated[str | None, typer.Option(help="which one, where there are several below")] = None,
    margin: Annotated[
        str | None, typer.Option(help="a smaller change is none, such as 5%; else as the latest run's study says")
    ] = None,
    metric: Annotated[list[str] | None, typer.Option(help="follow this metric; may be given several times")] = None,
    output: Annotated[str, typer.Option("--format", help="table, json or markdown")] = "table",
    html: Annotated[Path | None, typer.Option(help="write a page as well")] = None,
    markdown: Annotated[Path | None, typer.Option(help="write a summary as well")] = None,
    fail: Annotated[
        bool, typer.Option("--fail", help="exit code 4 when the latest level of a series is worse")
    ] = False,
) -> None:
    """Follow a study over its runs, by the dates of their records: what changed, when, and what else did.

    Exit code: 0 done, 5 no series has two runs, 2 a folder cannot be used; with --fail 4 when the last change of a
    series is confirmed and for the worse. Example: transect history archive/ --html history.html
    """
    from transect.analysis.history import history_of
    from transect.analysis.timelines import LeftOut, timeline
    from transect.domain.files import write_atomic
    from transect.domain.until import MARGIN
    from transect.engine.result_folders import find_runs, read_sets
    from transect.report.comparison.facts import history_facts
    from transect.report.comparison.history_page import Followed, write_history
    from transect.report.comparison.page import made_sections, sections_markdown

    check_format(output)
    given = None if margin is None else margin_of(margin, "--margin")
    found, again = find_runs(folders)
    check_outputs({"--html": html, "--markdown": markdown}, found)
    name, sets, others = _of_one_study(read_sets(found, over_time=True), study)
    line = timeline(sets)
    twice = [LeftOut(name=str(folder), why="given twice") for folder in again]
    if not line.runs:
        raise BadInput(f"{folders[0]}: no run has a record with a date: nothing to put in order")
    share = next((m for m in (given, *(run.results.margin for run in reversed(line.runs))) if m is not None), MARGIN)
    made = history_of(line.runs, metrics=metric or (), margin=share)
    followed = Followed(study=name, history=made, left_out=[*line.left_out, *others, *twice], margin=share)
    said = made_sections(followed.sections(), drawn=False)
    summary = sections_markdown(followed.title, said)
    if html is not None:
        write_history(html, followed)
    if markdown is not None:
        write_atomic(markdown, summary.encode("utf-8", "replace"))
    # Runs that share no cell are as good as one.
    longest = max((len(series.places) for series in made.series), default=0)
    code = NOTHING if longest < 2 else WORSE if fail and _ends_worse(made) else 0
    if output == "json":
        print(json.dumps(history_facts(followed) | {"exit_code": code}, indent=1))
    elif output == "markdown":
        print_lines(*summary.rstrip("\n").split("\n"))
    else:
        print_sections(said)
        print_lines("", followed.title)
    if code:
        raise typer.Exit(code)


def _of_one_study(sets: list[ResultSet], study: str | None) -> tuple[str, list[ResultSet], list[LeftOut]]:
    """Return a study's name, its runs and the others; what has no record is of any study."""
    from transect.analysis.timelines import LeftOut
    from transect.engine.result_folders import study_of

    names = {results.letter: study_of(results) for results in sets if results.loaded.records}
    known = sorted(set(names.values()))
    if study is None and len(known) > 1:
        raise BadInput(f"runs of {len(known)} studies: {', '.join(known)}: expected --study with one of them")
    if study is not None and study not in known:
        raise unknown_name("study", study, known, "--study")
    name = study or (known[0] if known else "")
    runs = [results for results in sets if names.get(results.letter, name) == name]
    others = [LeftOut(name=run.name, why=f"of study {names[run.letter]}") for run in sets if run not in runs]
    return name, runs, others


def _ends_worse(made: History) -> bool:
    from transect.analysis.set_lines import Outcome
    from transect.stats.comparisons import Confidence

    last = {id(change.series): change for change in sorted(made.changes, key=lambda change: change.at)}
    return any(end.outcome is Outcome.WORSE and end.confidence is Confidence.CONFIRMED for end in last.values())
