"""`transect compare`: result folders, or files of samples, compared with each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from transect.cli.output import print_lines, print_sections
from transect.domain.errors import BadInput

# Exit codes beside those of every command.
WORSE, NOTHING = 4, 5
# Options that name a folder.
_INTO = ("--into", "--site")
_FORMATS = ("table", "json", "markdown")


def margin_of(text: str, option: str) -> float:
    """Return the share that `5%` is. Raises BadInput for what is none."""
    from transect.domain.until import share_of

    try:
        return share_of(text)
    except ValueError as error:
        raise BadInput(f"{option} {text!r}: {error}") from None


def check_outputs(outputs: Mapping[str, Path | None], folders: Iterable[Path]) -> None:
    """Raise BadInput for an output among the results that are read, for two of one name, and for a file that would be none."""
    inside = [folder.resolve() for folder in folders]
    files = [given.resolve() for given in outputs.values() if given is not None]
    if len({*files}) < len(files):
        raise BadInput(f"{', '.join(outputs)}: expected another file for each")
    for option, given in outputs.items():
        if given is None:
            continue
        if not {*inside}.isdisjoint((given.resolve(), *given.resolve().parents)):
            raise BadInput(f"{option} {given}: is among the results that are read: expected a place elsewhere")
        # A file takes the place of what is there: of a pipe or a device, too.
        special = (given.exists() and not given.is_file()) or str(given.absolute().parent) in ("/dev", "/dev/fd")
        if option not in _INTO and special:
            raise BadInput(f"{option} '{given}': is no file, and none can take its place: expected the name of a file")


def check_format(output: str) -> None:
    """Raise BadInput for a format that is not there."""
    if output not in _FORMATS:
        raise BadInput(f"--format {output!r}: expected {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(help="result folders, or files of hyperfine, pyperf or asv; the first one is the base"),
    ],
    margin: Annotated[
        str | None, typer.Option(help="within which two are the same, such as 5%; else as the base's study says")
    ] = None,
    quality_margin: Annotated[str, typer.Option(help="the same for accuracy and the like")] = "1%",
    metric: Annotated[list[str] | None, typer.Option(help="compare this metric; may be given several times")] = None,
    output: Annotated[str, typer.Option("--format", help="table, json or markdown")] = "table",
    html: Annotated[Path | None, typer.Option(help="write a page as well")] = None,
    markdown: Annotated[Path | None, typer.Option(help="write a summary for a pull request as well")] = None,
    badge: Annotated[Path | None, typer.Option(help="write a badge (SVG) as well")] = None,
    junit: Annotated[
        Path | None, typer.Option(help="write JUnit's XML as well: what is worse is a failed test")
    ] = None,
    show_same: Annotated[bool, typer.Option("--all", help="list what is the same or open too")] = False,
    provisional: Annotated[
        bool, typer.Option("--provisional", help="also count what is only provisionally worse, and whole stages")
    ] = False,
    complete: Annotated[
        bool, typer.Option("--complete", help="exit code 5 when a cell of the base is not compared")
    ] = False,
) -> None:
    """Compare results of other systems, dates or versions with those of the first folder, cell by cell.

    Files that hyperfine, pyperf or asv wrote will do as well: a cell is a benchmark, by its name and parameters. Only cells of the same settings pair; what is faster at worse quality is not better. Exit code: 0 nothing is
    worse, 4 something is, 5 nothing was comparable or nothing is confirmed, 2 a folder cannot be used.
    Example: transect compare before/quick after/quick --margin 5% --html compared.html
    """
    from transect.analysis.set_lines import Outcome, incomplete, outcome_of
    from transect.analysis.set_verdicts import compare_sets
    from transect.domain.files import write_atomic
    from transect.domain.until import MARGIN
    from transect.engine.result_folders import read_sets
    from transect.report.comparison.badge import badge as draw
    from transect.report.comparison.badge import badge_text
    from transect.report.comparison.cases import comparison_cases
    from transect.report.comparison.compare_page import Compared, write_comparison
    from transect.report.comparison.facts import comparison_facts
    from transect.report.comparison.page import made_sections, sections_markdown
    from transect.report.junit import junit as write_junit

    check_format(output)
    if len(folders) < 2:
        raise BadInput(f"{folders[0]}: one alone: expected two or more, the first as the base")
    given = None if margin is None else margin_of(margin, "--margin")
    quality_share = margin_of(quality_margin, "--quality-margin")
    check_outputs({"--html": html, "--markdown": markdown, "--badge": badge, "--junit": junit}, folders)
    base, *others = read_sets(folders)
    share = next((m for m in (given, *(one.margin for one in (base, *others))) if m is not None), MARGIN)
    besides = compare_sets(base, others, metrics=metric or (), margin=share, quality_margin=quality_share)
    outcome = outcome_of(besides, provisional=provisional)
    compared = Compared(base=base, besides=besides, outcome=outcome, margin=share, quality_margin=quality_share)
    summary = sections_markdown(compared.title, made_sections(compared.sections(), drawn=False))
    if html is not None:
        write_comparison(html, compared)
    if markdown is not None:
        write_atomic(markdown, summary.encode("utf-8", "replace"))
    if badge is not None:
        drawn = draw(badge_text(besides, outcome, share), outcome)
        write_atomic(badge, drawn.encode("utf-8", "replace"))
    if junit is not None:
        write_atomic(junit, write_junit(comparison_cases(compared, provisional=provisional)))
    missing = incomplete(besides)
    code = {Outcome.WORSE: WORSE, Outcome.OPEN: NOTHING, Outcome.NOT_COMPARABLE: NOTHING}.get(outcome, 0)
    if complete and missing and code == 0:
        code = NOTHING
    if output == "json":
        print(json.dumps(comparison_facts(compared) | {"exit_code": code, "not_compared": missing}, indent=1))
    elif output == "markdown":
        print_lines(*summary.rstrip("\n").split("\n"))
    else:
        print_sections(made_sections(compared.sections(all_lines=show_same), drawn=False))
        print_lines("", compared.title)
        if missing:
            print_lines(f"{missing} cells of {base.letter} were not compared")
    if code:
        raise typer.Exit(code)
