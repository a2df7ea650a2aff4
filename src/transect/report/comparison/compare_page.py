"""What a comparison says, section by section: what changed, what did not, what was not compared, and on what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from transect.analysis.groups import grouped
from transect.analysis.history import Change
from transect.analysis.result_sets import ResultSet
from transect.analysis.set_lines import Beside, Line, Outcome
from transect.domain.cell import Cell
from transect.domain.files import write_atomic
from transect.domain.metrics import Direction
from transect.report.comparison.page import Unmade, made_sections, page_of
from transect.report.comparison.words import (
    ORDER,
    cell_names,
    change_text,
    counted,
    ends_of,
    lone_text,
    margin_text,
    metric_name,
    moved,
    ordered,
    outcome_text,
    refused_text,
    shift_text,
    state_text,
    summary_text,
    when,
    why_text,
)
from transect.report.engine.blocks import Chart, Chip, Column, Lead, Part, Prose, code, digits, note, table, words
from transect.report.engine.charts.chart import MAX_DRAWN, MAX_PANELS, dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import Style
from transect.report.engine.text import clean, clipped
from transect.stats.comparisons import Confidence

CHIPS = {
    Outcome.WORSE: "bad",
    Outcome.BETTER: "good",
    Outcome.SAME: "good",
    Outcome.OPEN: "plain",
    Outcome.NOT_COMPARABLE: "warn",
}
# Colour and, for those who do not see it, shape.
STYLES = {
    Outcome.WORSE: Style("#d55e00", "triangle-down"),
    Outcome.BETTER: Style("#009e73", "triangle-up"),
    Outcome.SAME: Style("#3a4149", "circle"),
    Outcome.OPEN: Style("#56b4e9", "diamond"),
    Outcome.NOT_COMPARABLE: Style("#594700", "cross"),
}
_CHANGED = (Outcome.WORSE, Outcome.BETTER)


@dataclass(frozen=True, kw_only=True)
class _LeftOut:
    """A cell that was not compared."""

    what: str
    cell: Cell
    why: str


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A comparison, and what its sections are made from."""

    base: ResultSet
    besides: Sequence[Beside]
    outcome: Outcome
    margin: float
    quality_margin: float

    @property
    def title(self) -> str:
        """What it came to."""
        return f"{', '.join(b.other.letter for b in self.besides)} beside A: {outcome_text(self.outcome, self.besides)}"

    def sections(self, *, all_lines: bool = True) -> list[Unmade]:
        """Return what there is to say; what is the same or open only with `all_lines`."""
        said: list[Unmade] = [
            ("verdict", "Verdict", self._verdict),
            ("changes", "Better and worse", partial(self._lines, "The worse first.", *_CHANGED)),
            ("charts", "Every cell beside the base", self._charts),
            (
                "not-comparable",
                "Not comparable",
                partial(self._lines, "What nothing can be said of.", Outcome.NOT_COMPARABLE),
            ),
        ]
        if all_lines:
            said += [
                ("undecided", "Open", partial(self._lines, "What the repeats cannot tell.", Outcome.OPEN)),
                ("same", "The same", partial(self._lines, "Shown to be within the margin.", Outcome.SAME)),
            ]
        return [
            *said,
            ("left-out", "Not compared", self._left_out),
            ("surroundings", "Machine and software", self._surroundings),
            ("methods", "Methods", self._methods),
        ]

    @cached_property
    def _names(self) -> dict[Cell, str]:
        lines = [line.cell for beside in self.besides for line in beside.lines]
        return cell_names([*lines, *(row.cell for beside in self.besides for row in self._not_compared(beside))])

    def short_name(self, cell: Cell) -> str:
        """Name a cell where its stage stands beside it."""
        return self._names[cell].removeprefix(f"{cell.stage}: ")

    def _verdict(self) -> Iterator[Part]:
        yield Lead(
            "Cells with the same settings, beside the base's. Confirmed: shown by three repeats a side or more, beside all "
            "that is compared here."
        )
        for beside in self.besides:
            yield Prose(f"{beside.other.letter} beside A: {counted(beside.lines)}.")
            for shift in beside.shifts:
                yield note(shift_text(shift, beside.other.letter) + ".")
        sets = [self.base, *(beside.other for beside in self.besides)]
        # Words and no records: what a folder holds is about every cell, and of no use to a filter.
        rows = [
            (
                results.letter,
                clean(results.name),
                clean(", ".join(sorted({record.study for record in results.loaded.records}))),
                " to ".join(when(text) for text in results.span if text),
                len(results.loaded.records),
                state_text(results),
            )
            for results in sets
        ]
        yield table(
            rows,
            [
                words("Set", lambda row: row[0]),
                code("Folder", lambda row: row[1]),
                words("Study", lambda row: row[2]),
                words("Measured", lambda row: row[3]),
                digits("Records", lambda row: row[4]),
                words("Left out", lambda row: row[5]),
            ],
            caption=f"What is compared: margin {margin_text(self.margin, sets)}, of quality {100 * self.quality_margin:g} %",
        )
        problems = [(results.letter, problem) for results in sets for problem in results.loaded.problems]
        if problems:
            yield table(problems, problem_columns(), folded="Problems")

    def _lines(self, lead: str, *outcomes: Outcome) -> Iterator[Part]:
        yield Lead(lead)
        for beside in self.besides:
            rows = [line for line in ordered(beside.lines) if line.outcome in outcomes]
            if not rows:
                continue
            yield table(
                rows,
                [
                    words("Verdict", lambda row: Chip(row.outcome.value, CHIPS[row.outcome])),
                    words("Confidence", lambda row: row.confidence.value),
                    self._cell,
                    words("Metric", lambda row: metric_name(row.metric, row.what) or "how it ended"),
                    digits("A", lambda row: summary_text(row, base=True)),
                    digits(beside.other.letter, lambda row: summary_text(row, base=False)),
                    _CHANGE,
                    words("Why", why_text),
                ],
                caption=f"{beside.other.letter} beside A: {counted(rows)}",
            )

    @property
    def _cell(self) -> Column[Any]:
        return words("Cell", lambda row: self._names[row.cell])

    def _charts(self) -> Iterator[Part]:
        drawn = 0
        for beside in self.besides:
            lines = [line for line in beside.lines if line.ratio and line.ratio > 0]
            for group in grouped(lines, lambda line: (line.cell.stage, line.metric, line.what)).values():
                changed = any(line.outcome in _CHANGED for line in group)
                if drawn < MAX_PANELS and changed and len(group) > 1:
                    yield self._chart(beside.other.letter, group, drawn)
                    drawn += 1

    def _chart(self, letter: str, lines: Sequence[Line], place: int) -> Chart | None:
        def worse_first(line: Line) -> float:
            assert line.ratio is not None
            return -line.ratio if line.direction is Direction.LOWER else line.ratio

        def dot(line: Line) -> Dot:
            assert line.ratio is not None and line.comparison is not None
            low, high = ends_of(line.comparison.decision) or (None, None)
            known = high is not None and high < 10 * line.ratio
            return Dot(
                label=self.short_name(line.cell),
                value=line.ratio,
                low=low if known else None,
                high=high if known else None,
                style=STYLES[line.outcome],
                right=f"{line.outcome} {moved(line.ratio)}",
                hollow=line.confidence is not Confidence.CONFIRMED,
            )

        first = lines[0]
        # What changed is drawn, wherever it lies among many.
        ranked = sorted(lines, key=lambda line: (line.outcome not in _CHANGED, worse_first(line)))
        shown, others = (sorted(part, key=worse_first) for part in (ranked[:MAX_DRAWN], ranked[MAX_DRAWN:]))
        cut = f"{len(shown)} of {len(lines)} are drawn, first of all what changed; the others stand in the table only."
        return dot_chart(
            shown,
            dot,
            [self._cell, _CHANGE, words("Verdict", lambda row: Chip(row.outcome.value, CHIPS[row.outcome]))],
            title=f"{first.cell.stage}, {metric_name(first.metric, first.what)}: {counted(lines)}",
            axis=f"{letter} / A ({'more' if first.direction is Direction.HIGHER else 'less'} is better)",
            name=f"compare-{place}",
            rule=1.0,
            log=True,
            others=others,
            notes=(cut if others else "", "Hollow: not confirmed. Lines are 95 % intervals."),
        )

    def _not_compared(self, beside: Beside) -> list[_LeftOut]:
        letter, pairing = beside.other.letter, beside.pairing
        rows = [
            _LeftOut(what="refused", cell=refused.pair.base.cell, why=refused_text(refused, letter))
            for refused in pairing.refused
        ]
        for side, lone in (("A", pairing.only_base), (letter, pairing.only_other)):
            rows += [_LeftOut(what=f"only in {side}", cell=one.group.cell, why=lone_text(one)) for one in lone]
        why = "the same measurement on both sides"
        return rows + [_LeftOut(what="copied", cell=pair.base.cell, why=why) for pair in pairing.copied]

    def _left_out(self) -> Iterator[Part]:
        yield Lead("Cells that only one side has, or whose settings differ under one name.")
        for beside in self.besides:
            if rows := self._not_compared(beside):
                amounts = Counter(row.what for row in rows)
                yield table(
                    rows,
                    [
                        words("Not compared", lambda row: row.what),
                        self._cell,
                        words("Because", lambda row: row.why),
                        code("Id", lambda row: row.cell.id),
                    ],
                    caption=f"{beside.other.letter} beside A: {', '.join(f'{n} {what}' for what, n in amounts.items())}",
                )

    def _surroundings(self) -> Iterator[Part]:
        yield Lead("In what the machine, the software and the variables that change speed differ.")
        for beside in self.besides:
            if beside.differences:
                yield table(
                    beside.differences,
                    [
                        words("Kind", lambda row: row.kind),
                        words("Fact", lambda row: clean(row.fact)),
                        words("A", lambda row: clipped(" / ".join(row.before), 200)),
                        words(beside.other.letter, lambda row: clipped(" / ".join(row.after), 200)),
                    ],
                    caption=f"{beside.other.letter} beside A: "
                    f"{', '.join(dict.fromkeys(difference.kind for difference in beside.differences))}",
                )

    def _methods(self) -> Iterator[Part]:
        family = sum(
            line.comparison is not None and line.comparison.decision is not None
            for beside in self.besides
            for line in beside.lines
        )
        yield Prose(
            f"Two middles are different by a two-sided t test, the same by two one-sided ones against the margin of "
            f"{100 * self.margin:g} % ({100 * self.quality_margin:g} % for quality), each with the variance of its own "
            f"repeats beside that of all cells of its kind, of the noisier side. Holm's correction runs over all "
            f"{family} comparisons of this page. Qualities, and times to a quality, are compared seed by seed."
        )
        yield Prose(
            "What is faster at worse quality is not better. Cells pair by their axes; settings, data and model have to be "
            "the same. The repeats of one folder know the noise within one run of the study, not that from day to day: "
            "what moved all cells together is said apart, and several runs tell more (transect history)."
        )


def problem_columns() -> list[Column[Any]]:
    """Return the columns of whose problems there are, where, and what they are."""
    return [
        code("Folder", lambda row: clean(row[0])),
        code("Where", lambda row: clean(row[1].where)),
        words("What", lambda row: clipped(row[1].what, 300)),
    ]


_CHANGE: Column[Any] = digits("Change", change_text)


def write_comparison(output: Path, compared: Compared) -> None:
    """Write the page of a comparison to `output`, atomically; raises OSError."""
    page = page_of(
        made_sections(compared.sections(), drawn=True),
        kind="comparison",
        title=compared.title,
        about=[
            f"{results.letter}: {results.name}" for results in (compared.base, *(b.other for b in compared.besides))
        ],
        chips=outcome_chips(line for beside in compared.besides for line in beside.lines),
    )
    write_atomic(output, page)


def outcome_chips(judged: Iterable[Line | Change]) -> list[Chip]:
    """Return how many lines or changes came to what, the worse first."""
    amounts = Counter(one.outcome for one in judged)
    return [Chip(f"{amounts[verdict]} {verdict}", CHIPS[verdict]) for verdict in ORDER if amounts[verdict]]
