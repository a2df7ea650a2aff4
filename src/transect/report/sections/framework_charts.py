"""Small multiples of the frameworks: one panel per number of ranks, all on one axis."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import Group, group_labels
from transect.analysis.statistics import Summary
from transect.report.blocks import Chart, Column, Table, Value
from transect.report.charts.plots import Dot, dot_plot, log_is_better
from transect.report.charts.theme import render
from transect.report.context import Context
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.sections.throughput import accuracy_text, left_out, marks
from transect.report.text import Scale, count, number, scale_for, spread

__all__ = ["MOST", "panels"]

# Rows of one panel: with more, names and marks are no longer found again.
MOST = 12
_RATE = "samples_per_second"


def panels(context: Context, workload: str, groups: Sequence[Group]) -> list[Chart]:
    """Draw time to quality per number of ranks; samples/s where no cell reached the target."""
    synthetic = any(group.kind.synthetic for group in groups)
    reached = [group for group in groups if reaches_target(group)] if not synthetic else []
    name = TIME if reached else _RATE
    found = [(g, s) for g in reached or groups if (s := g.summary(name)) is not None]
    if not found:
        return []
    scale = scale_for([s.median for _, s in found], "s" if reached else "1")
    # Ends and repeats too, so that no panel needs an axis of its own.
    among = [end / scale.factor for g, s in found for end in (s.low, s.high, *g.values(name))]
    charts = []
    for ranks in sorted({group.cell.ranks for group in groups}):
        own = [pair for pair in found if pair[0].cell.ranks == ranks]
        every = [group for group in groups if group.cell.ranks == ranks]
        if own:
            charts.append(_panel(context, workload, ranks, name, own, every, scale, among))
    return charts


def _panel(
    context: Context, workload: str, ranks: int, name: str, found: list[tuple[Group, Summary]],
    every: list[Group], scale: Scale, among: list[float],
) -> Chart:  # fmt: skip
    quality = name == TIME
    sign = 1 if quality else -1
    found = sorted(found, key=lambda pair: (sign * pair[1].median, pair[0].cell.id))
    labels = group_labels(every, never=("ranks",))
    dots = [
        Dot(
            label=labels[group.cell], value=summary.median / scale.factor,
            low=summary.low / scale.factor, high=summary.high / scale.factor,
            points=[value / scale.factor for value in group.values(name)],
            style=context.style(group), hollow=group.over_subscribed,
            right=f"{scale.text(summary.median)} {scale.unit}".strip(),
        )
        for group, summary in found[:MOST]
    ]  # fmt: skip
    rows: list[list[Value]] = [
        [labels[group.cell], scale.text(summary.median), spread(summary, scale),
         str(summary.count), accuracy_text(group), marks(group)]
        for group, summary in found
    ]  # fmt: skip
    missed = len(every) - len(found)
    if quality:
        title, axis = f"Time to {quality_target(every)}", f"time to quality ({scale.unit})"
    elif every[0].kind.synthetic:
        title, axis = "Throughput on synthetic input", "samples/s"
    else:
        title, axis = "Throughput, as no target was reached", "samples/s"
    title = f"{count(ranks, 'rank')}: {title[0].lower()}{title[1:]}"
    notes = [
        left_out(len(found), MOST, "slowest"),
        f"{count(missed, 'cell')} missed the target in at least one run." if quality and missed else "",
        "Hollow: more ranks than cores, no claim." if any(dot.hollow for dot in dots) else "",
    ]  # fmt: skip
    better = "less is better" if quality else "more is better"
    return Chart(
        title=title,
        svg=render(
            dot_plot(dots, title=f"{axis}, {better}", among=among, log=log_is_better(among)),
            alt_text=f"{workload}, {title}, {len(dots)} rows. Best: {dots[0].label}, "
            f"{number(dots[0].value)} {scale.unit}".strip() + ".",
            name=f"frameworks-{workload}-{ranks}",
        ),
        alt=f"{title} per framework and strategy, best first.",
        note=" ".join(note for note in notes if note),
        table=Table(
            columns=[Column("Framework and strategy"),
                     Column(f"Median ({scale.unit})" if scale.unit else "Median", numeric=True),
                     Column("Range or interval", numeric=True), Column("Runs", numeric=True),
                     Column("Accuracy", numeric=True), Column("")],
            rows=rows, folded="Numbers",
        ),
    )  # fmt: skip
