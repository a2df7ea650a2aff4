"""Charts of one workload's training cells: time to quality, throughput, and where a step goes."""

from __future__ import annotations

import re

from transect.analysis.bounds import step_bound
from transect.analysis.comparisons import Comparison
from transect.analysis.groups import Group, group_labels
from transect.analysis.scaling import METRIC
from transect.analysis.statistics import Summary
from transect.report.blocks import Chart, Chip, Column, Table, Value
from transect.report.charts.plots import Bar, Dot, bar_plot, dot_plot
from transect.report.charts.theme import MUTED, Style, legend, render
from transect.report.context import Context
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.text import number, percent, scale_for, spread

__all__ = [
    "MOST_DRAWN", "NOT_TOLD", "accuracy_text", "left_out", "marks", "quality_chart", "split_chart",
    "throughput_chart", "undecided",
]  # fmt: skip

NOT_TOLD = "not told"
# Rows of one chart; more are listed below it.
MOST_DRAWN = 20
_PARTS = ("compute", "communication", "input")
_WORDS = {"compute": "compute", "communication": "waited communication", "input": "input"}


def undecided(comparison: Comparison) -> Chip:
    """Return the chip of two sides that cannot be told apart."""
    alone = min(comparison.a.count, comparison.b.count) == 1
    return Chip("one run a side" if alone else "within noise", "plain")


def left_out(rows: int, most: int, which: str) -> str:
    """Say how many rows of a chart stand in its table only; empty when none do."""
    if rows <= most:
        return ""
    return f"{most} of {rows} are drawn; the {rows - most} {which} stand in the table only."


def accuracy_text(group: Group) -> str:
    """Return the median accuracy that a group reached, as text."""
    summary = group.summary("accuracy")
    return percent(summary.median, 1) if summary else "no accuracy"


def marks(group: Group) -> Value:
    """Return the chip that warns about a group, if any."""
    if group.over_subscribed:
        return Chip("over-subscribed", "warn")
    return Chip("disturbed", "warn") if group.disturbed else None


def _sorted(groups: list[Group], name: str, *, best_low: bool) -> list[tuple[Group, Summary]]:
    found = [(group, summary) for group in groups if (summary := group.summary(name))]
    sign = 1 if best_low else -1
    return sorted(found, key=lambda pair: (sign * pair[1].median, pair[0].cell.id))


def quality_chart(context: Context, workload: str, groups: list[Group]) -> Chart | None:
    """Draw the time to the quality target, soonest first; None when nothing reached it."""
    able = [group for group in groups if reaches_target(group)]
    found = _sorted(able, TIME, best_low=True)
    if not found:
        return None
    labels = group_labels(groups, always=("ranks",))
    scale = scale_for([summary.median for _, summary in found], "s")
    dots, rows = [], []
    for group, summary in found:
        dots.append(_dot(context, group, TIME, summary, scale.factor, labels[group.cell]))
        steps = group.summary("steps_to_quality")
        rows.append([
            labels[group.cell], scale.text(summary.median), spread(summary, scale),
            str(summary.count), number(steps.median) if steps else "–", accuracy_text(group),
            marks(group),
        ])  # fmt: skip
    missed = [group for group in groups if not reaches_target(group)]
    rows += [[labels[g.cell], "not reached in every run", "–", str(len(g.ok)), "–",
              accuracy_text(g), marks(g)] for g in missed]  # fmt: skip
    columns = [
        Column("Cell"), Column(f"Median ({scale.unit})", numeric=True),
        Column("Range or interval", numeric=True), Column("Runs", numeric=True),
        Column("Steps", numeric=True), Column("Accuracy", numeric=True), Column(""),
    ]  # fmt: skip
    target = quality_target(groups)
    title = f"Time to {target}"
    return Chart(
        title=title,
        svg=render(
            dot_plot(dots[:MOST_DRAWN], title=f"time to {target} ({scale.unit}), less is better"),
            alt_text=f"{workload}: {title}. Soonest: {dots[0].label}, "
            f"{number(dots[0].value)} {scale.unit}.",
            name=f"ttq-{_slug(workload, groups)}",
        ),
        alt=f"{title} of every cell that reached it in every run, soonest first.",
        note=_notes(
            left_out(len(dots), MOST_DRAWN, "slowest"),
            f"{len(missed)} of {len(groups)} points missed the target in at least one run."
            if missed else "",
        ),
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip


def throughput_chart(context: Context, workload: str, groups: list[Group]) -> Chart | None:
    """Draw samples per second, fastest first, with the bound where one is known."""
    found = _sorted(groups, METRIC, best_low=False)
    if not found:
        return None
    labels = group_labels(groups, always=("ranks",))
    scale = scale_for([], "1")
    dots, rows = [], []
    for group, summary in found:
        bound = step_bound(group, context.rates)
        batch = group.global_batch
        limit = bound.rate(batch) if bound and batch else None
        dots.append(_dot(context, group, METRIC, summary, 1.0, labels[group.cell], limit))
        rows.append([
            labels[group.cell], number(summary.median), spread(summary, scale), str(summary.count),
            number(limit) if limit else "–", bound.kind if bound else "–",
            percent(summary.median / limit, 1) if limit else "–", accuracy_text(group),
            marks(group),
        ])  # fmt: skip
    columns = [
        Column("Cell"), Column("Median (samples/s)", numeric=True),
        Column("Range or interval", numeric=True), Column("Runs", numeric=True),
        Column("Bound (samples/s)", numeric=True), Column("Set by"),
        Column("Of the bound", numeric=True), Column("Accuracy", numeric=True), Column(""),
    ]  # fmt: skip
    bounded = any(dot.bound for dot in dots)
    return Chart(
        title="Throughput on synthetic input"
        if all(group.kind.synthetic for group in groups) else "Throughput",
        svg=render(
            dot_plot(dots[:MOST_DRAWN], title="samples/s, more is better"),
            alt_text=f"{workload}: throughput. Fastest: {dots[0].label}, {number(dots[0].value)} "
            f"samples per second at accuracy {dots[0].right}.",
            name=f"rate-{_slug(workload, groups)}",
        ),
        alt="Samples per second of every cell, fastest first.",
        note=_notes(
            left_out(len(dots), MOST_DRAWN, "slowest"),
            "Upright grey mark: the roofline bound with as many threads as the ranks use."
            if bounded else "No bound: no benchmark ran with as many threads as these cells use.",
        ),
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip


def _dot(
    context: Context, group: Group, name: str, summary: Summary, factor: float, label: str,
    bound: float | None = None,
) -> Dot:  # fmt: skip
    return Dot(
        label=label,
        value=summary.median / factor,
        low=summary.low / factor,
        high=summary.high / factor,
        points=[value / factor for value in group.values(name)],
        style=context.style(group),
        bound=bound,
        right=accuracy_text(group),
        hollow=group.over_subscribed,
    )


def _slug(workload: str, groups: list[Group]) -> str:
    """Name a workload and a kind for ids: letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{workload} {groups[0].kind.words}".strip())


def _notes(*notes: str) -> str:
    return " ".join(note for note in notes if note)


def split_chart(context: Context, workload: str, groups: list[Group]) -> Chart | None:
    """Draw how a step's time divides into compute, waited communication and input."""
    found = _sorted(groups, "step_time", best_low=True)
    if not found:
        return None
    labels = group_labels(groups, always=("ranks",))
    scale = scale_for([summary.median for _, summary in found], "s")
    styles: dict[str, Style] = {part: context.styles.get(part) for part in _PARTS}
    bars, rows = [], []
    silent = False
    for group, step in found:
        medians = [group.summary(f"{part}_time") for part in _PARTS]
        values = [summary.median if summary else None for summary in medians]
        parts = [(scale(v) or 0.0, styles[p]) for p, v in zip(_PARTS, values, strict=True)]
        if None in values:
            # What is not told is drawn as such: an empty place would read as zero.
            known = sum(value for value in values if value is not None)
            parts.append((scale(max(0.0, step.median - known)) or 0.0, Style(MUTED)))
            silent = True
        waited = values[1]
        share = waited / step.median if waited is not None and step.median else None
        text = NOT_TOLD if waited is None else percent(share or 0.0)
        bars.append(Bar(label=labels[group.cell], parts=parts, right=f"{text} waited"
                        if waited is not None else f"waiting {text}"))  # fmt: skip
        rows.append([labels[group.cell], scale.text(step.median),
                     *(NOT_TOLD if v is None else scale.text(v) for v in values),
                     text, marks(group)])  # fmt: skip
    columns = [Column("Cell"), Column(f"Step ({scale.unit})", numeric=True)]
    columns += [Column(f"{_WORDS[p].capitalize()} ({scale.unit})", numeric=True) for p in _PARTS]
    columns += [Column("Waited share", numeric=True), Column("")]
    items = [(_WORDS[part], styles[part]) for part in _PARTS]
    return Chart(
        title="Where a step's time goes",
        svg=render(
            bar_plot(bars[:MOST_DRAWN], title=f"median time per step ({scale.unit})"),
            alt_text=f"{workload}: compute, waited communication and input time of a step per cell. "
            f"Shortest step: {bars[0].label}.",
            name=f"split-{_slug(workload, groups)}",
        ),
        alt="Stacked bars of compute, waited communication and input time.",
        legend=legend([*items, *([(NOT_TOLD, Style(MUTED))] if silent else [])], line=False),
        note=_notes(
            left_out(len(bars), MOST_DRAWN, "longest"),
            "Medians of the parts need not add up to the median step.",
        ),
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )  # fmt: skip
