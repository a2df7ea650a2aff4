"""Latency over that of C++ with an interval, and what other session options do to it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from transect.analysis.groups import grouped
from transect.analysis.serving import REFERENCE, WHOLE, InferGroup, Versus, base_point, changed_settings, versus
from transect.report.engine.blocks import Chip, Column, Part, digits, table, words
from transect.report.engine.charts.chart import dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import labelled, medians, undecided
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, factor, in_unit
from transect.report.topics.serving.overhead import setting_words
from transect.runtimes.options import EQUAL
from transect.stats.comparisons import Verdict
from transect.stats.samples import Spread

_NAME = "C++"


def ratio_chart(context: Context, name: str, groups: Sequence[InferGroup]) -> Part:
    """Draw ratios at the smallest batch with the fewest threads; the table has all points."""
    if not groups:
        return None
    references = _References(groups)
    pairs = [
        pair
        for group in groups
        if (cpp := references.of(group)) is not None and (pair := versus(group, cpp, context.floors)) is not None
    ]
    if not pairs:
        return None
    least = set(base_point(pair.group for pair in pairs))
    pairs.sort(
        key=lambda pair: (
            pair.group not in least,
            pair.group.cell.batch,
            pair.group.cell.threads,
            pair.ratio.value,
            pair.group.cell.id,
        )
    )
    first = [pair for pair in pairs if pair.group in least]
    label = labelled(pairs, "Point", always=("threads", "batch"))
    short = labelled(first, "Point")

    def dot(pair: Versus) -> Dot:
        return Dot(
            label=str(short.entry(pair)),
            value=pair.ratio.value,
            low=pair.ratio.low,
            high=pair.ratio.high,
            style=context.style(pair.group),
            right=factor(pair.ratio.value),
            hollow=pair.comparison.verdict is Verdict.SAME,
            ends=pair.ratio.word,
            count=min(pair.comparison.a.count, pair.comparison.b.count),
        )

    base: Column[Versus] = words("C++ from", lambda pair: pair.baseline.cell.exporter)
    cell = first[0].group.cell
    return dot_chart(
        first,
        dot,
        [label, *_columns("Ratio", base)],
        others=pairs[len(first) :],
        title=f"Latency over that of {_NAME} at batch {cell.batch}, {count(cell.threads, 'thread')}",
        axis=f"times the latency of {_NAME} (log scale)",
        name=f"ratio-{name}",
        first="Lowest",
        unit="times",
        rule=1.0,
        log=True,
        notes=["Hollow: not distinguishable from it. Line: the interval, or range."],
    )


class _References:
    """C++ at every point; a baseline without an exporter meets its first one."""

    def __init__(self, groups: Sequence[InferGroup]) -> None:
        self._own: dict[Hashable, InferGroup] = {}
        for group in groups:
            if group.cell.runtime == REFERENCE:
                point = group.cell.apart_from("runtime", "exporter")
                self._own[point, group.cell.exporter] = group
                self._own.setdefault((point, None), group)

    def of(self, group: InferGroup) -> InferGroup | None:
        """Return what a group is set beside, or None for C++ itself and where it did not run."""
        point = group.cell.apart_from("runtime", "exporter")
        return None if group.cell.runtime == REFERENCE else self._own.get((point, group.cell.exporter))


def _columns(title: str = "Ratio", *more: Column[Versus]) -> list[Column[Versus]]:
    def span(pair: Versus) -> str | None:
        if pair.ratio.spread is Spread.SINGLE:
            return None
        return f"{factor(pair.ratio.low)} – {factor(pair.ratio.high)}"

    def mark(pair: Versus) -> Chip | None:
        if pair.comparison.verdict is Verdict.SAME:
            return undecided(pair.comparison)
        return Chip("crosses versions", "warn") if pair.crosses else None

    def runs(pair: Versus) -> str:
        return f"{pair.comparison.a.count}, {pair.comparison.b.count}"

    return [
        medians("Latency", "latency", in_unit("s")),
        digits(title, lambda pair: pair.ratio.value, factor),
        digits("Range or interval", span),
        digits("Runs", runs),
        words("Compared", _compared),
        *more,
        words("", mark),
    ]


def _compared(pair: Versus) -> str:
    return "end to end" if pair.measure == WHOLE else "Run"


def option_table(context: Context, groups: Sequence[InferGroup]) -> Iterator[Part]:
    """List runs with other session options than the equal ones, beside the same runtime with those."""
    closed = [g for g in groups if g.cell.load is None and g.cell.sessions == 1]
    equal = {group.cell.apart_from("options"): group for group in closed if group.cell.options == EQUAL}
    pairs = []
    for group in closed:
        base = equal.get(group.cell.apart_from("options"))
        if base is not None and base is not group:
            pair = versus(group, base, context.floors)
            if pair is not None:
                pairs.append(pair)
    if not pairs:
        return

    def changed(pair: Versus) -> str:
        differing = changed_settings(pair.group, pair.baseline)
        return "not told" if differing is None else clean(setting_words(differing)) or "nothing"

    of_workload = grouped(pairs, lambda pair: pair.group.cell.workload)
    for workload, members in sorted(of_workload.items()):
        members.sort(
            key=lambda pair: (
                pair.group.cell.runtime,
                pair.group.cell.batch,
                pair.group.cell.threads,
                -pair.ratio.value,
            )
        )
        yield table(
            members,
            [
                labelled(members, "Runtime and options", always=("threads",)),
                words("Changed", changed),
                *_columns("Times equal"),
            ],
            caption=f"{workload}: other session options, beside the same runtime with equal ones",
            fold_title=f"Other session options in {workload}",
        )
