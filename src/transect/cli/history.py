"""`transect history`: many runs of a study over time, or of several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
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
    from transect.report.comparison.history_page import Followed

_OTAVA = "otava"


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
    export: Annotated[str | None, typer.Option(help="write the series for another program as well: otava")] = None,
    into: Annotated[Path | None, typer.Option(help="the folder for --export [default: otava]")] = None,
    site: Annotated[
        Path | None, typer.Option(help="write an index and a page for each study into this folder as well")
    ] = None,
    fail: Annotated[
        bool, typer.Option("--fail", help="exit code 4 when the latest level of a series is worse")
    ] = False,
) -> None:
    """Follow a study over its runs, by the dates of their records: what changed, when, and what else did.

    With --site all studies below, unless --study names one. Exit code: 0 done, 5 no series has two runs, 2 a folder
    cannot be used; with --fail 4 when the last change of a series is confirmed and for the worse.
    Example: transect history archive/ --html history.html
    """
    from transect.domain.files import write_atomic
    from transect.engine.result_folders import find_runs, read_sets
    from transect.report.comparison.history_page import history_page

    check_format(output)
    place = _place_of(export, into)
    several = site is not None and study is None
    if several and (html or markdown or place):
        raise BadInput("--site is of all studies, --html, --markdown and --export of one: expected --study as well")
    given = None if margin is None else margin_of(margin, "--margin")
    found, again = find_runs(folders)
    check_outputs({"--html": html, "--markdown": markdown, "--into": place, "--site": site}, found)
    sets = read_sets(found, over_time=True)
    names: list[str | None] = [*_studies(sets)] if several else []
    parts = [_of_one_study(sets, name) for name in names or [study]]
    if not several:
        parts[0][2].extend(_twice(again))
    made = {name: _followed(name, runs, () if several else others, metric or (), given) for name, runs, others in parts}
    studies = [followed for followed in made.values() if followed is not None]
    if not studies:
        raise BadInput(f"{folders[0]}: no run has a record with a date: nothing to put in order")
    if html is not None:
        write_atomic(html, history_page(studies[0]))
    if markdown is not None:
        write_atomic(markdown, _markdown(studies[0]).encode("utf-8", "replace"))
    if place is not None:
        _write_otava(place, studies[0].history)
    if site is not None:
        _write_site(site, studies, [name for name in made if made[name] is None], again if several else ())
    code = _exit_code([followed.history for followed in studies], fail=fail)
    _print(studies, output, code, several=several)
    if code:
        raise typer.Exit(code)


def _print(studies: Sequence[Followed], output: str, code: int, *, several: bool) -> None:
    """Print a study's history; of several, data as a list, and in words what became of each."""
    from transect.report.comparison.facts import history_facts
    from transect.report.comparison.page import made_sections

    facts = map(history_facts, studies)
    if output == "json":
        print(json.dumps(({"studies": [*facts]} if several else next(facts)) | {"exit_code": code}, indent=1))
    elif output == "markdown":
        print_lines(*(line for one in studies for line in _markdown(one).rstrip("\n").split("\n")))
    else:
        if not several:
            print_sections(made_sections(studies[0].sections(), drawn=False))
            print_lines("")
        print_lines(*(followed.title for followed in studies))


def _markdown(followed: Followed) -> str:
    from transect.report.comparison.page import made_sections, sections_markdown

    return sections_markdown(followed.title, made_sections(followed.sections(), drawn=False))


def _exit_code(histories: Sequence[History], *, fail: bool) -> int:
    # Runs that share no cell are as good as one.
    if max((len(series.places) for made in histories for series in made.series), default=0) < 2:
        return NOTHING
    return WORSE if fail and any(map(_ends_worse, histories)) else 0


def _place_of(export: str | None, into: Path | None) -> Path | None:
    """Return the folder of an export, or None without one."""
    if export is None and into is not None:
        raise BadInput(f"--into {into}: nothing is exported there: expected --export {_OTAVA} as well")
    if export not in (None, _OTAVA):
        raise BadInput(f"--export {export!r}: expected {_OTAVA}")
    return None if export is None else into or Path(_OTAVA)


def _write_otava(place: Path, made: History) -> None:
    """Write what Otava reads, and say how it is called; on stderr, as the rest may be read by a script."""
    from transect.domain.terminal import say
    from transect.report.comparison.otava import CONFIG, otava_contents
    from transect.report.engine.export import put

    written = put(place, _OTAVA, "", otava_contents(made), state="")
    # It reads one year, unless it is told since when; a day is one of this time zone there.
    since = made.runs[0].at - timedelta(days=1)
    say(
        f"{place}: {written.files} files: cd there, then: otava analyze --config-file {CONFIG} --since {since:%Y-%m-%d} all"
    )
    say(*(f"{place}: left out: {what}" for what in written.left_out))


def _write_site(site: Path, studies: Sequence[Followed], undated: Sequence[str], again: Sequence[Path]) -> None:
    """Write the pages; `undated` names studies that have none, `again` folders that were met a second time."""
    from transect.analysis.timelines import LeftOut
    from transect.domain.terminal import say
    from transect.report.comparison.site import INDEX, site_contents
    from transect.report.engine.export import put

    left_out = [LeftOut(name=name, why="no run has a record with a date") for name in undated]
    written = put(site, "site", "", site_contents(studies, [*left_out, *_twice(again)]), state="")
    say(f"{site / INDEX}: {written.files} pages")


def _twice(again: Sequence[Path]) -> list[LeftOut]:
    from transect.analysis.timelines import LeftOut

    return [LeftOut(name=str(folder), why="given twice") for folder in again]


def _followed(
    name: str, sets: Sequence[ResultSet], others: Sequence[LeftOut], metrics: Sequence[str], margin: float | None
) -> Followed | None:
    """Return the history of a study's runs; None where none has a date. Raises BadInput for an unknown metric."""
    from transect.analysis.history import history_of
    from transect.analysis.timelines import timeline
    from transect.domain.until import MARGIN
    from transect.report.comparison.history_page import Followed

    line = timeline(list(sets))
    if not line.runs:
        return None
    own = (run.results.margin for run in reversed(line.runs))
    share = next((known for known in (margin, *own) if known is not None), MARGIN)
    made = history_of(line.runs, metrics=metrics, margin=share)
    return Followed(study=name, history=made, left_out=[*line.left_out, *others], margin=share)


def _studies(sets: Sequence[ResultSet]) -> list[str]:
    """Return the names of the studies that have records, sorted."""
    from transect.engine.result_folders import study_of

    return sorted({study_of(results) for results in sets if results.loaded.records})


def _of_one_study(sets: list[ResultSet], study: str | None) -> tuple[str, list[ResultSet], list[LeftOut]]:
    """Return a study's name, its runs and the others; what has no record is of any study."""
    from transect.analysis.timelines import LeftOut
    from transect.engine.result_folders import study_of

    names = {results.letter: study_of(results) for results in sets if results.loaded.records}
    known = _studies(sets)
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
