"""A comparison in Markdown, as a comment on a pull request has it.

What comes from records stands in code: there, no name is a mention, a link, an image or a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from transect.analysis.result_sets import ResultSet
from transect.analysis.set_lines import Beside, Line, Outcome
from transect.domain.cell import Cell
from transect.report.comparison.words import (
    cell_names,
    counted,
    difference_text,
    lone_text,
    metric_name,
    moved,
    ordered,
    outcome_text,
    refused_text,
    shift_text,
    state_text,
    summary_text,
    verdict_text,
    when,
)
from transect.report.engine.text import clipped, count

# Rows of one table: a comment may have 65,536 characters.
_MAX_COUNT = 40
_MAX_LENGTH = 300


def comparison_markdown(
    base: ResultSet, besides: Sequence[Beside], *, outcome: Outcome, margin: float, quality_margin: float
) -> str:
    """Write what changed, what was not compared and where the sides differ; long lists are counted."""
    parts = [
        f"### transect: {outcome_text(outcome, besides)}",
        f"Base A: {code(base.name)}, measured {_dates(base)}{_odd(base)}. Margin {100 * margin:g} %, of quality "
        f"{100 * quality_margin:g} %.",
    ]
    for beside in besides:
        parts += _of_set(base, beside)
    return "\n\n".join(parts) + "\n"


def code(text: str, most: int = _MAX_LENGTH) -> str:
    """Return foreign text as one code span that can stand in a table's cell.

    >>> code("a`|b")
    '``a`\\\\|b``'
    """
    text = clipped(text, most).replace("|", "\\|") or "–"
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; its cells are Markdown already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fold(title: str, body: str) -> str:
    """Hide a part behind its title."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _dates(results: ResultSet) -> str:
    first, last = results.span
    return f"{code(when(first))} to {code(when(last))}" if first else "never"


def _odd(results: ResultSet) -> str:
    state = state_text(results)
    return f" ({state})" if state else ""


def _of_set(base: ResultSet, beside: Beside) -> list[str]:
    other, pairing = beside.other, beside.pairing
    parts = [
        f"**{other.letter}** {code(other.name)}, measured {_dates(other)}{_odd(other)}: **{counted(beside.lines)}**."
    ]
    names = cell_names(line.cell for line in beside.lines)
    by_changed: dict[bool, list[Line]] = {True: [], False: []}
    for line in ordered(beside.lines):
        by_changed[line.outcome in (Outcome.WORSE, Outcome.BETTER)].append(line)
    if by_changed[True]:
        parts.append(_lines(by_changed[True], names, other))
    for shift in beside.shifts:
        if shift.decision.answer.value == "different":
            parts.append(code(shift_text(shift, other.letter)))
    if by_changed[False]:
        title = f"{counted(by_changed[False])}"
        parts.append(fold(title, _lines(by_changed[False], names, other)))
    aside = [
        (
            f"- {code(refused.pair.base.cell.id)}: {code(refused_text(refused, base.letter, other.letter))}",
            "refused: unlike settings",
        )
        for refused in pairing.refused
    ]
    aside += [(f"- {code(pair.base.cell.id)}", "the same measurement on both sides") for pair in pairing.copied]
    for letter, unpaired in ((base.letter, pairing.only_base), (other.letter, pairing.only_other)):
        aside += [(f"- {code(lone.group.cell.id)}: {code(lone_text(lone))}", f"only in {letter}") for lone in unpaired]
    for title in dict.fromkeys(title for _, title in aside):
        entries = [line for line, of in aside if of == title]
        more = [f"- and {len(entries) - _MAX_COUNT} more"] if len(entries) > _MAX_COUNT else []
        parts.append(fold(f"{count(len(entries), 'cell')} {title}", "\n".join([*entries[:_MAX_COUNT], *more])))
    if beside.differences:
        listed = [f"- {code(difference_text(difference))}" for difference in beside.differences[:_MAX_COUNT]]
        title = f"{count(len(beside.differences), 'difference')} of machine and software"
        parts.append(fold(title, "\n".join(listed)))
    return parts


def _lines(lines: Sequence[Line], names: dict[Cell, str], other: ResultSet) -> str:
    rows = []
    for line in lines[:_MAX_COUNT]:
        comparison = line.comparison
        decision = comparison.decision if comparison else None
        change = moved(line.ratio, *((decision.low, decision.high) if decision else (None, None)))
        rows.append(
            (
                verdict_text(line),
                code(names[line.cell]),
                code(metric_name(line.metric, line.what)) if line.metric else "how it ended",
                summary_text(comparison.b, line.unit) if comparison else "–",
                summary_text(comparison.a, line.unit) if comparison else "–",
                change if comparison else code(line.reason),
            )
        )
    table = grid(("verdict", "cell", "metric", "A", other.letter, "change"), rows)
    remaining = len(lines) - _MAX_COUNT
    return f"{table}\n\nand {remaining} more" if remaining > 0 else table
