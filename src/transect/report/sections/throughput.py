"""Charts of training groups: time to quality, throughput, and where a step goes."""

from __future__ import annotations

import re

from transect.analysis.bounds import Bound, step_bound
from transect.analysis.groups import Group, group_labels
from transect.analysis.scaling import METRIC
from transect.report.blocks import Chart, Chip, Value, digits, words
from transect.report.charts.chart import MOST_DRAWN, dot_chart, drawn, left_out
from transect.report.charts.plots import Bar, bar_plot
from transect.report.charts.theme import MUTED, Style, legend
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.sections.columns import (
    NOT_TOLD,
    accuracy_text,
    label_column,
    marks,
    metric_columns,
    metric_dot,
    ranked,
)
from transect.report.text import number, percent, scale_for

__all__ = ["quality_chart", "split_chart", "throughput_chart"]

_PARTS = {"compute": "compute", "communication": "waited communication", "input": "input"}


def quality_chart(context: Context, workload: str, groups: list[Group]) -> Chart | None:
    """Draw the time to the quality target, soonest first; None when nothing reached it."""
    labels, target = group_labels(groups, always=("ranks",)), quality_target(groups)
    reached = ranked(filter(reaches_target, groups), TIME, best_low=True)
    missed = [group for group in groups if not reaches_target(group)]
    scale = scale_for([median(group, TIME) for group in reached], "s")

    def steps(group: Group) -> Value:
        value = median(group, "steps_to_quality") if reaches_target(group) else None
        return "–" if value is None else number(value)

    middle, ends, _ = metric_columns(TIME, scale)
    return dot_chart(
        reached,
        lambda group: metric_dot(
            context, group, TIME, scale, labels[group.cell], right=accuracy_text(group)
        ),
        [
            label_column(labels),
            digits(middle.title, lambda group: middle.value(group) if reaches_target(group)
                   else "not reached in every run"),
            digits(ends.title, lambda group: ends.value(group) if reaches_target(group) else "–"),
            digits("Runs", lambda group: str(len(group.ok))), digits("Steps", steps),
            digits("Accuracy", accuracy_text), words("", marks),
        ],
        title=f"Time to {target}", axis=f"time to {target} ({scale.unit}), less is better",
        name=f"ttq-{_slug(workload, groups)}", about=workload, first="Soonest", unit=scale.unit,
        others=missed,
        notes=[f"{len(missed)} of {len(groups)} points missed the target in at least one run."
               if missed else ""],
    )  # fmt: skip


def throughput_chart(context: Context, workload: str, groups: list[Group]) -> Chart | None:
    """Draw samples per second, fastest first, with the bound where one is known."""
    labels = group_labels(groups, always=("ranks",))
    fastest = ranked(groups, METRIC, best_low=False)
    scale = scale_for([], "1")

    def bound_of(group: Group) -> tuple[Bound | None, float | None]:
        bound, batch = step_bound(group, context.rates), group.global_batch
        return bound, bound.rate(batch) if bound and batch else None

    def share(group: Group) -> Value:
        rate, (_, limit) = median(group, METRIC), bound_of(group)
        if rate is None or not limit:
            return "–"
        share = percent(rate / limit, 1)
        return Chip(f"{share}: the bound is wrong", "warn") if rate > limit else share

    def limit_text(group: Group) -> Value:
        limit = bound_of(group)[1]
        return number(limit) if limit else "–"

    def set_by(group: Group) -> Value:
        bound = bound_of(group)[0]
        return bound.kind if bound else "–"

    bounded = any(bound_of(group)[1] for group in fastest)
    synthetic = all(group.kind.synthetic for group in groups)
    return dot_chart(
        fastest,
        lambda group: metric_dot(
            context, group, METRIC, scale, labels[group.cell], right=accuracy_text(group),
            bound=bound_of(group)[1],
        ),
        [
            label_column(labels), *metric_columns(METRIC, scale, unit="samples/s"),
            digits("Bound (samples/s)", limit_text), words("Set by", set_by),
            digits("Of the bound", share), digits("Accuracy", accuracy_text), words("", marks),
        ],
        title="Throughput on synthetic input" if synthetic else "Throughput",
        axis="samples/s, more is better", name=f"rate-{_slug(workload, groups)}",
        about=workload, first="Fastest", unit="samples per second",
        notes=["Upright grey mark: the roofline bound with as many threads as the ranks use."
               if bounded else
               "No bound: no benchmark ran with as many threads as these cells use."],
    )  # fmt: skip


def _slug(workload: str, groups: list[Group]) -> str:
    """Name a workload and a kind for ids: letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{workload} {groups[0].kind.words}".strip())


def split_chart(context: Context, workload: str, groups: list[Group]) -> Chart | None:
    """Draw how a step's time divides into compute, waited communication and input."""
    shortest = ranked(groups, "step_time", best_low=True)
    if not shortest:
        return None
    labels = group_labels(groups, always=("ranks",))
    scale = scale_for([median(group, "step_time") for group in shortest], "s")
    styles: dict[str, Style] = {part: context.styles.get(part) for part in _PARTS}

    def part_text(part: str, group: Group) -> Value:
        value = median(group, f"{part}_time")
        return NOT_TOLD if value is None else scale.text(value)

    def waited(group: Group) -> str:
        step, value = median(group, "step_time"), median(group, "communication_time")
        return NOT_TOLD if value is None else percent(value / step if step else 0.0)

    def bar(group: Group) -> Bar:
        values = {part: median(group, f"{part}_time") for part in _PARTS}
        parts = [(scale(value) or 0.0, styles[part]) for part, value in values.items()]
        if None in values.values():
            # What is not told is drawn as such: an empty place would read as zero.
            rest = (median(group, "step_time") or 0.0) - sum(filter(None, values.values()))
            parts.append((scale(max(0.0, rest)) or 0.0, Style(MUTED)))
        share = waited(group)
        return Bar(label=labels[group.cell], parts=parts,
                   right=f"waiting {share}" if share == NOT_TOLD else f"{share} waited")  # fmt: skip

    bars = [bar(group) for group in shortest[:MOST_DRAWN]]
    silent = any(len(row.parts) > len(_PARTS) for row in bars)
    return drawn(
        bar_plot(bars, title=f"median time per step ({scale.unit})"), shortest,
        [
            label_column(labels),
            digits(f"Step ({scale.unit})", lambda group: scale.text(median(group, "step_time"))),
            *(digits(f"{word.capitalize()} ({scale.unit})",
                     lambda group, part=part: part_text(part, group))
              for part, word in _PARTS.items()),
            digits("Waited share", waited), words("", marks),
        ],
        title="Where a step's time goes", name=f"split-{_slug(workload, groups)}",
        alt=f"{workload}: compute, waited communication and input time of a step per cell. "
        f"Shortest step: {bars[0].label}.",
        legend=legend([*((word, styles[part]) for part, word in _PARTS.items()),
                       *([(NOT_TOLD, Style(MUTED))] if silent else [])], line=False),
        notes=(left_out(len(shortest), MOST_DRAWN, "longest"),
               "Medians of the parts need not add up to the median step."),
    )  # fmt: skip
