"""`transect compare`: result folders compared with each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transect.cli.output import add_row, new_table, print_lines, print_problems, print_table
from transect.domain.errors import BadInput

if TYPE_CHECKING:
    from transect.analysis.result_sets import ResultSet
    from transect.analysis.set_lines import Beside

# Exit codes beside those of every command.
WORSE, NOTHING = 4, 5
_FORMATS = ("table", "json", "markdown")
# Cells that were not compared, in the terminal's table.
MAX_LEFT_OUT = 60


def margin_of(text: str, option: str) -> float:
    """Return the share that `5%` is. Raises BadInput for what is none."""
    from transect.domain.until import share_of

    try:
        return share_of(text)
    except ValueError as error:
        raise BadInput(f"{option} {text!r}: {error}") from None


def check_outputs(outputs: Mapping[str, Path | None], folders: Iterable[Path]) -> None:
    """Raise BadInput for an output among the results that are read, and for two of one name."""
    inside = [folder.resolve() for folder in folders]
    files = [given.resolve() for given in outputs.values() if given is not None]
    if len({*files}) < len(files):
        raise BadInput(f"{', '.join(outputs)}: expected another file for each")
    for option, given in outputs.items():
        if given is not None and not {*inside}.isdisjoint(given.resolve().parents):
            raise BadInput(f"{option} {given}: is inside a result folder: expected a file elsewhere")


def check_format(output: str) -> None:
    """Raise BadInput for a format that is not there."""
    if output not in _FORMATS:
        raise BadInput(f"--format {output!r}: expected {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")


def compare(
    folders: Annotated[list[Path], typer.Argument(help="result folders; the first one is the base")],
    margin: Annotated[str, typer.Option(help="within which two are the same")] = "5%",
    quality_margin: Annotated[str, typer.Option(help="the same for accuracy and the like")] = "1%",
    metric: Annotated[list[str] | None, typer.Option(help="compare this metric; may be given several times")] = None,
    output: Annotated[str, typer.Option("--format", help="table, json or markdown")] = "table",
    html: Annotated[Path | None, typer.Option(help="write a page as well")] = None,
    markdown: Annotated[Path | None, typer.Option(help="write a summary for a pull request as well")] = None,
    badge: Annotated[Path | None, typer.Option(help="write a badge (SVG) as well")] = None,
    show_same: Annotated[bool, typer.Option("--all", help="list what is the same or open too")] = False,
    provisional: Annotated[
        bool, typer.Option("--provisional", help="also count what is only provisionally worse, and whole stages")
    ] = False,
    complete: Annotated[
        bool, typer.Option("--complete", help="exit code 5 when a cell of the base is not compared")
    ] = False,
) -> None:
    """Compare results of other systems, dates or versions with those of the first folder, cell by cell.

    Only cells of the same settings pair; what is faster at worse quality is not better. Exit code: 0 nothing is
    worse, 4 something is, 5 nothing was comparable or nothing is confirmed, 2 a folder cannot be used.
    Example: transect compare before/quick after/quick --margin 5% --html compared.html
    """
    from transect.analysis.set_lines import Outcome
    from transect.analysis.set_outcome import incomplete, outcome_of
    from transect.analysis.set_verdicts import compare_sets
    from transect.domain.files import write_atomic
    from transect.engine.result_folders import read_sets
    from transect.report.comparison.badge import badge as draw
    from transect.report.comparison.badge import badge_text
    from transect.report.comparison.compare_page import write_comparison
    from transect.report.comparison.facts import comparison_facts
    from transect.report.comparison.markdown import comparison_markdown
    from transect.report.comparison.words import outcome_text

    check_format(output)
    if len(folders) < 2:
        raise BadInput(f"{folders[0]}: one folder alone: expected two or more, the first as the base")
    shares: dict[str, Any] = {
        "margin": margin_of(margin, "--margin"),
        "quality_margin": margin_of(quality_margin, "--quality-margin"),
    }
    check_outputs({"--html": html, "--markdown": markdown, "--badge": badge}, folders)
    base, *others = read_sets(folders)
    besides = compare_sets(base, others, metrics=metric or (), **shares)
    outcome = outcome_of(besides, provisional=provisional)
    outcome_and_margins = {"outcome": outcome} | shares
    summary = comparison_markdown(base, besides, **outcome_and_margins)
    if html is not None:
        write_comparison(html, base, besides, **outcome_and_margins)
    if markdown is not None:
        write_atomic(markdown, summary.encode("utf-8", "replace"))
    if badge is not None:
        drawn = draw(badge_text(besides, outcome, shares["margin"]), outcome)
        write_atomic(badge, drawn.encode("utf-8", "replace"))
    missing = incomplete(besides)
    code = {Outcome.WORSE: WORSE, Outcome.OPEN: NOTHING, Outcome.NOT_COMPARABLE: NOTHING}.get(outcome, 0)
    if complete and missing and code == 0:
        code = NOTHING
    if output == "json":
        facts = comparison_facts(base, besides, **outcome_and_margins) | {"exit_code": code, "not_compared": missing}
        print(json.dumps(facts, indent=1))
    elif output == "markdown":
        print_lines(*summary.rstrip("\n").split("\n"))
    else:
        _print(base, besides, show_same)
        print_lines(f"outcome: {outcome_text(outcome, besides)}")
        if missing:
            print_lines(f"{missing} cells of {base.letter} were not compared")
    if code:
        raise typer.Exit(code)


def _print(base: ResultSet, besides: Sequence[Beside], show_same: bool) -> None:
    from transect.report.comparison.words import counted, shift_text, state_text, when

    sets = new_table("", "folder", "from", "to", "records", "left out")
    for result_set in (base, *(beside.other for beside in besides)):
        records = str(len(result_set.loaded.records))
        add_row(sets, result_set.letter, result_set.name, *map(when, result_set.span), records, state_text(result_set))
    print_table(sets)
    for result_set in (base, *(beside.other for beside in besides)):
        print_problems(result_set.letter, result_set.loaded.problems)
    for beside in besides:
        letter = beside.other.letter
        _print_lines_of(base, beside, show_same)
        for shift in beside.shifts:
            print_lines(shift_text(shift, letter))
        _print_left_out(base, beside)
        print_lines("", f"{letter} beside {base.letter}: {counted(beside.lines)}")


def _print_lines_of(base: ResultSet, beside: Beside, show_same: bool) -> None:
    from transect.analysis.set_lines import Outcome
    from transect.report.comparison.words import (
        cell_names,
        metric_name,
        moved,
        ordered,
        summary_text,
        verdict_text,
        why_text,
    )

    shown = [line for line in ordered(beside.lines) if show_same or line.outcome not in (Outcome.SAME, Outcome.OPEN)]
    if not shown:
        return
    names = cell_names(line.cell for line in beside.lines)
    rows = new_table("verdict", "cell", "metric", base.letter, beside.other.letter, "change", "why")
    for line in shown:
        comparison = line.comparison
        decision = comparison.decision if comparison else None
        ends = (decision.low, decision.high) if decision else (None, None)
        add_row(
            rows,
            verdict_text(line),
            names[line.cell],
            metric_name(line.metric, line.what) or "how it ended",
            summary_text(comparison.b if comparison else None, line.unit),
            summary_text(comparison.a if comparison else None, line.unit),
            moved(line.ratio, *ends),
            why_text(line),
        )
    print_lines("")
    print_table(rows)


def _print_left_out(base: ResultSet, beside: Beside) -> None:
    from transect.report.comparison.words import difference_text, lone_text, refused_text

    pairing, letter = beside.pairing, beside.other.letter
    rows = [
        ("refused", refused.pair.base.cell, f"unlike settings: {refused_text(refused, base.letter, letter)}")
        for refused in pairing.refused
    ]
    for side, lone in ((base.letter, pairing.only_base), (letter, pairing.only_other)):
        rows += [(f"only in {side}", alone.group.cell, lone_text(alone)) for alone in lone]
    rows += [("copied", pair.base.cell, "the same measurement on both sides") for pair in pairing.copied]
    if rows:
        table = new_table("not compared", "stage", "cell", "because")
        for what, cell, why in rows[:MAX_LEFT_OUT]:
            add_row(table, what, cell.stage, cell.id, why)
        print_lines("")
        print_table(table)
        if len(rows) > MAX_LEFT_OUT:
            print_lines(f"and {len(rows) - MAX_LEFT_OUT} more: --format json has all")
    if beside.differences:
        print_lines("", f"machine and software, {base.letter} → {letter}:")
        print_lines(*(f"  {difference_text(difference)}" for difference in beside.differences))
