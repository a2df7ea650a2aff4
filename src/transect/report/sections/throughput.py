"""Charts of one workload's training cells: time to quality, throughput, and where a step goes."""

from __future__ import annotations

from transect.analysis.bounds import step_bound
from transect.analysis.groups import Group, group_labels
from transect.analysis.scaling import METRIC
from transect.analysis.statistics import Summary
from transect.report.blocks import Chart, Chip, Column, Table, Value
from transect.report.charts.plots import Bar, Dot, bar_plot, dot_plot
from transect.report.charts.theme import Style, legend, render
from transect.report.context import Context
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.text import number, percent, scale_for, spread

__all__ = ["accuracy_text", "marks", "quality_chart", "split_chart", "throughput_chart"]

_PARTS = ("compute", "communication", "input")


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
            dot_plot(dots, title=f"time to {target} ({scale.unit}), less is better"),
            alt_text=f"{workload}: {title}. Soonest: {dots[0].label}, "
            f"{number(dots[0].value)} {scale.unit}.",
            name=f"ttq-{workload}",
        ),
        alt=f"{title} of every cell that reached it in every run, soonest first.",
        note=f"{len(missed)} of {len(groups)} points missed the target in at least one run."
        if missed else "",
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
        title="Throughput",
        svg=render(
            dot_plot(dots, title="samples/s, more is better"),
            alt_text=f"{workload}: throughput. Fastest: {dots[0].label}, {number(dots[0].value)} "
            f"samples per second at accuracy {dots[0].right}.",
            name=f"rate-{workload}",
        ),
        alt="Samples per second of every cell, fastest first.",
        note="Upright grey mark: the roofline bound with as many threads as the ranks use."
        if bounded else "No bound: no benchmark ran with as many threads as these cells use.",
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


def split_chart(context: Context, workload: str, groups: list[Group]) -> Chart | None:
    """Draw how a step's time divides into compute, communication and input."""
    found = _sorted(groups, "step_time", best_low=True)
    if not found:
        return None
    labels = group_labels(groups, always=("ranks",))
    scale = scale_for([summary.median for _, summary in found], "s")
    styles: dict[str, Style] = {part: context.styles.get(part) for part in _PARTS}
    bars, rows = [], []
    for group, step in found:
        medians = [group.summary(f"{part}_time") for part in _PARTS]
        values = [summary.median if summary else 0.0 for summary in medians]
        share = values[1] / step.median if step.median else 0.0
        parts = [(scale(v) or 0.0, styles[p]) for p, v in zip(_PARTS, values, strict=True)]
        bars.append(Bar(label=labels[group.cell], parts=parts,
                        right=f"{percent(share)} communication"))  # fmt: skip
        rows.append([labels[group.cell], scale.text(step.median), *map(scale.text, values),
                     percent(share), marks(group)])  # fmt: skip
    columns = [Column("Cell"), Column(f"Step ({scale.unit})", numeric=True)]
    columns += [Column(f"{part.capitalize()} ({scale.unit})", numeric=True) for part in _PARTS]
    columns += [Column("Communication share", numeric=True), Column("")]
    return Chart(
        title="Where a step's time goes",
        svg=render(
            bar_plot(bars, title=f"median time per step ({scale.unit})"),
            alt_text=f"{workload}: compute, communication and input time of a step per cell. "
            f"Shortest step: {bars[0].label}.",
            name=f"split-{workload}",
        ),
        alt="Stacked bars of compute, communication and input time.",
        legend=legend(((part, styles[part]) for part in _PARTS), line=False),
        note="Medians of the parts need not add up to the median step.",
        table=Table(columns=columns, rows=rows, folded="Numbers"),
    )
