"""The page of a comparison: what changed, what did not, what was not compared, and on what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from transect.analysis.groups import grouped
from transect.analysis.result_sets import ResultSet
from transect.analysis.set_lines import Beside, Line, Outcome
from transect.domain.cell import Cell
from transect.domain.metrics import Direction
from transect.report.comparison.page import made_sections, write_sections
from transect.report.comparison.words import (
    ORDER,
    cell_names,
    counted,
    lone_text,
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
from transect.report.engine.blocks import Chart, Chip, Heading, Lead, Part, Prose, code, digits, note, table, words
from transect.report.engine.charts.chart import MAX_DRAWN, MAX_PANELS, dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.charts.theme import Style
from transect.report.engine.text import clean, clipped, count
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


def write_comparison(
    output: Path, base: ResultSet, besides: Sequence[Beside], *, outcome: Outcome, margin: float, quality_margin: float
) -> None:
    """Write the page of a comparison to `output`, atomically; raises OSError."""
    page = _Page(base, besides, margin, quality_margin)
    sections = made_sections(
        [
            ("verdict", "Verdict", page.verdict),
            ("changes", "Better and worse", page.changes),
            ("undecided", "Open and not comparable", page.undecided),
            ("same", "The same", page.same),
            ("left-out", "Not compared", page.left_out),
            ("surroundings", "Machine and software", page.surroundings),
            ("methods", "Methods", page.methods),
        ]
    )
    amounts = Counter(line.outcome for beside in besides for line in beside.lines)
    chips = [Chip(f"{amounts[verdict]} {verdict}", CHIPS[verdict]) for verdict in ORDER if amounts[verdict]]
    write_sections(
        output,
        sections,
        kind="comparison",
        title=f"{_names(base, besides)}: {outcome_text(outcome, besides)}",
        about=[f"{results.letter}: {results.name}" for results in (base, *(b.other for b in besides))],
        chips=chips,
    )


def _names(base: ResultSet, besides: Sequence[Beside]) -> str:
    return f"{', '.join(beside.other.letter for beside in besides)} beside {base.letter}"


class _Page:
    """What every section is made from."""

    def __init__(self, base: ResultSet, besides: Sequence[Beside], margin: float, quality_margin: float) -> None:
        self.base = base
        self.besides = besides
        self.margin = margin
        self.quality_margin = quality_margin
        self.names = cell_names(
            [line.cell for beside in besides for line in beside.lines]
            + [lone.group.cell for b in besides for lone in (*b.pairing.only_base, *b.pairing.only_other)]
            + [refused.pair.base.cell for b in besides for refused in b.pairing.refused]
            + [pair.base.cell for beside in besides for pair in beside.pairing.copied]
        )

    def verdict(self) -> Iterator[Part]:
        """Say what each set came to, and what the sets are."""
        yield Lead(
            "Cells with the same settings, beside the base's. Confirmed: shown by three repeats a side or more, beside all "
            "that is compared here."
        )
        for beside in self.besides:
            yield Prose(f"{beside.other.letter}: {counted(beside.lines)}.")
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
                words("", lambda row: row[0]),
                code("Folder", lambda row: row[1]),
                words("Study", lambda row: row[2]),
                words("Measured", lambda row: row[3]),
                digits("Records", lambda row: row[4]),
                words("Left out", lambda row: row[5]),
            ],
            caption="What is compared",
        )
        for results in sets:
            problems = results.loaded.problems
            if problems:
                yield table(
                    problems,
                    [code("Where", lambda row: clean(row.where)), words("What", lambda row: clipped(row.what, 300))],
                    folded=f"Problems in {results.letter}",
                )

    def changes(self) -> Iterator[Part]:
        """Show what is worse or better, and where the cells of each metric lie."""
        yield Lead("What is worse or better than the base, the worse first.", empty="Nothing is worse or better.")
        for beside in self.besides:
            yield from self._rows(beside, _CHANGED)
        drawn = 0
        for beside in self.besides:
            lines = [line for line in beside.lines if line.ratio and line.ratio > 0]
            for (stage, metric, what), group in grouped(
                lines, lambda line: (line.cell.stage, line.metric, line.what)
            ).items():
                if drawn < MAX_PANELS and any(line.outcome in _CHANGED for line in group):
                    yield self._chart(beside, f"{stage}: {metric_name(metric, what)}", group, drawn)
                    drawn += 1

    def undecided(self) -> Iterator[Part]:
        """List what cannot be told, and why."""
        yield Lead("What the repeats cannot tell, and what nothing can be said of.", empty="Everything is decided.")
        for beside in self.besides:
            yield from self._rows(beside, (Outcome.NOT_COMPARABLE, Outcome.OPEN))

    def same(self) -> Iterator[Part]:
        """List what is the same within the margin."""
        yield Lead(
            "What is shown to be the same as the base within the margin.", empty="Nothing is shown to be the same."
        )
        for beside in self.besides:
            yield from self._rows(beside, (Outcome.SAME,), folded=True)

    def left_out(self) -> Iterator[Part]:
        """List the cells that have no counterpart of the same settings."""
        yield Lead(
            "Cells that only one side has, or whose settings differ under one name.",
            empty="Every cell has its counterpart.",
        )
        for beside in self.besides:
            a, b, pairing = self.base.letter, beside.other.letter, beside.pairing
            if pairing.refused:
                yield table(
                    pairing.refused,
                    [
                        words("Cell", lambda row: self.names[row.pair.base.cell]),
                        words("Differs in", partial(refused_text, base=a, other=b)),
                    ],
                    caption=f"{b}: refused, because settings are unlike",
                )
            if pairing.copied:
                yield table(
                    pairing.copied,
                    [words("Cell", lambda row: self.names[row.base.cell])],
                    caption=f"{b}: the same measurement on both sides",
                    fold_title="Cells",
                )
            for letter, lone in ((a, pairing.only_base), (b, pairing.only_other)):
                if lone:
                    yield table(
                        lone,
                        [
                            words("Cell", lambda row: self.names[row.group.cell]),
                            words("On the other side", lone_text),
                            code("Id", lambda row: row.group.cell.id),
                        ],
                        caption=f"{b}: {count(len(lone), 'cell')} only in {letter}",
                        fold_title=f"Only in {letter}",
                    )

    def surroundings(self) -> Iterator[Part]:
        """List what the sides were not alike in."""
        yield Lead(
            "In what the machine, the software and the variables that change speed differ.",
            empty="Nothing that records tell.",
        )
        for beside in self.besides:
            if not beside.differences:
                continue
            kinds = dict.fromkeys(difference.kind for difference in beside.differences)
            yield Prose(f"{beside.other.letter} differs from the base in {', '.join(kinds)}.")
            yield table(
                beside.differences,
                [
                    words("", lambda row: row.kind),
                    words("Fact", lambda row: clean(row.fact)),
                    words(self.base.letter, lambda row: clipped(" / ".join(row.before), 200)),
                    words(beside.other.letter, lambda row: clipped(" / ".join(row.after), 200)),
                ],
                caption=f"{beside.other.letter} beside {self.base.letter}",
                fold_title="Differences",
            )

    def methods(self) -> Iterator[Part]:
        """Say how verdicts came about."""
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

    def _rows(self, beside: Beside, outcomes: Sequence[Outcome], folded: bool = False) -> Iterator[Part]:
        rows = [line for line in ordered(beside.lines) if line.outcome in outcomes]
        if not rows:
            return
        if len(self.besides) > 1:
            yield Heading(f"{beside.other.letter} beside {self.base.letter}")
        title = f"{counted(rows)}"
        yield table(
            rows,
            [
                words("Verdict", lambda row: Chip(row.outcome.value, CHIPS[row.outcome])),
                words("Confidence", lambda row: row.confidence.value),
                words("Cell", lambda row: self.names[row.cell]),
                words("Metric", lambda row: metric_name(row.metric, row.what) or "how it ended"),
                digits(
                    self.base.letter, lambda row: summary_text(row.comparison.b if row.comparison else None, row.unit)
                ),
                digits(
                    beside.other.letter,
                    lambda row: summary_text(row.comparison.a if row.comparison else None, row.unit),
                ),
                digits("Change", _change),
                words("Why", why_text),
            ],
            caption="" if folded else title,
            folded=title if folded else "",
            fold_title=title,
        )

    def _chart(self, beside: Beside, title: str, lines: Sequence[Line], place: int) -> Chart | None:
        def worse_first(line: Line) -> float:
            assert line.ratio is not None
            return -line.ratio if line.direction is Direction.LOWER else line.ratio

        def dot(line: Line) -> Dot:
            assert line.ratio is not None and line.comparison is not None
            decision = line.comparison.decision
            known = decision is not None and 0 < decision.low <= decision.high < 10 * line.ratio
            return Dot(
                label=_short(self.names, line.cell),
                value=line.ratio,
                low=decision.low if decision and known else None,
                high=decision.high if decision and known else None,
                style=STYLES[line.outcome],
                right=f"{line.outcome} {moved(line.ratio)}",
                hollow=line.confidence is not Confidence.CONFIRMED,
            )

        more = "more" if lines[0].direction is Direction.HIGHER else "less"
        # What changed is drawn, wherever it lies among many.
        ranked = sorted(lines, key=lambda line: (line.outcome not in _CHANGED, worse_first(line)))
        shown, others = (sorted(part, key=worse_first) for part in (ranked[:MAX_DRAWN], ranked[MAX_DRAWN:]))
        cut = f"{len(shown)} of {len(lines)} are drawn, first of all what changed; the others stand in the table only."
        return dot_chart(
            shown,
            dot,
            [
                words("Cell", lambda row: self.names[row.cell]),
                digits("Change", _change),
                words("", lambda row: Chip(row.outcome.value, CHIPS[row.outcome])),
            ],
            title=title,
            axis=f"{beside.other.letter} / {self.base.letter} ({more} is better)",
            name=f"compare-{place}",
            first="Worst",
            rule=1.0,
            log=True,
            others=others,
            notes=(cut if others else "", "Hollow: not confirmed. Lines are 95 % intervals."),
        )


def _change(line: Line) -> str:
    decision = line.comparison.decision if line.comparison else None
    return moved(line.ratio, *((decision.low, decision.high) if decision else (None, None)))


def _short(names: dict[Cell, str], cell: Cell) -> str:
    return names[cell].removeprefix(f"{cell.stage}: ")
