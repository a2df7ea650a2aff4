"""Charts of frameworks side by side: a panel per number of ranks, all on one axis."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import Group, group_labels
from transect.report.blocks import Chart, digits, words
from transect.report.charts.chart import MOST_PANELS, dot_chart
from transect.report.charts.plots import log_is_better
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.sections.columns import (
    accuracy_text,
    label_column,
    marks,
    metric_columns,
    metric_dot,
    ranked,
)
from transect.report.text import count, scale_for

__all__ = ["MOST", "panels"]

# Rows of one panel: with more, names and marks are no longer found again.
MOST = 12
_RATE = "samples_per_second"


def panels(context: Context, workload: str, groups: Sequence[Group]) -> list[Chart]:
    """Draw time to quality per number of ranks; samples/s where no cell reached the target."""
    synthetic = any(group.kind.synthetic for group in groups)
    reached = [group for group in groups if reaches_target(group)] if not synthetic else []
    name = TIME if reached else _RATE
    shown = ranked(reached or groups, name, best_low=bool(reached))
    scale = scale_for([median(group, name) for group in shown], "s" if reached else "1")
    # Ends and repeats too, so that no panel needs an axis of its own.
    among = [value / scale.factor for group in shown for value in group.values(name)]
    if reached:
        title, axis = f"Time to {quality_target(groups)}", f"time to quality ({scale.unit})"
    else:
        title = "Throughput on synthetic input" if synthetic else (
            "Throughput, as no target was reached")  # fmt: skip
        axis = "samples/s"
    charts = []
    for ranks in sorted({group.cell.ranks for group in shown})[:MOST_PANELS]:
        every = [group for group in groups if group.cell.ranks == ranks]
        own = [group for group in shown if group.cell.ranks == ranks]
        labels = group_labels(every, never=("ranks",))
        missed = len(every) - len(own)
        charts.append(
            dot_chart(
                own,
                lambda group, labels=labels: metric_dot(
                    context, group, name, scale, labels[group.cell],
                    right=f"{scale.text(median(group, name))} {scale.unit}".strip(),
                ),
                [
                    label_column(labels, "Framework and strategy"), *metric_columns(name, scale),
                    digits("Accuracy", accuracy_text), words("", marks),
                ],
                title=f"{count(ranks, 'rank')}: {title[0].lower()}{title[1:]}",
                axis=f"{axis}, {'less' if reached else 'more'} is better",
                name=f"frameworks-{workload}-{ranks}", about=workload, unit=scale.unit, most=MOST,
                among=among, log=log_is_better(among),
                notes=[
                    f"{count(missed, 'cell')} missed the target in at least one run."
                    if reached and missed else "",
                    "Hollow: more ranks than cores, no claim."
                    if any(group.over_subscribed for group in own[:MOST]) else "",
                ],
            )
        )  # fmt: skip
    return [chart for chart in charts if chart is not None]
