"""Charts of frameworks side by side: a panel per number of ranks, all on one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.analysis.groups import Group, group_labels
from transect.analysis.scaling import METRIC
from transect.report.blocks import Part
from transect.report.charts.chart import MOST_PANELS
from transect.report.charts.plots import log_is_better
from transect.report.context import Context
from transect.report.findings.finding import median
from transect.report.findings.training import TIME, quality_target, reaches_target
from transect.report.sections.columns import (
    ACCURACY,
    MARKS,
    label_column,
    metric_chart,
    metric_columns,
    ranked,
)
from transect.report.text import count, scale_for

__all__ = ["MOST", "panels"]

# Rows of one panel: with more, names and marks are no longer found again.
MOST = 12


def panels(context: Context, workload: str, groups: Sequence[Group]) -> Iterator[Part]:
    """Draw time to quality per number of ranks; samples/s where no cell reached the target."""
    synthetic = any(group.kind.synthetic for group in groups)
    reached = [] if synthetic else list(filter(reaches_target, groups))
    name = TIME if reached else METRIC
    if reached:
        title, axis = f"time to {quality_target(groups)}", "time to quality ({}), less is better"
    else:
        title = (
            "throughput on synthetic input" if synthetic else "throughput, as no target was reached"
        )
        axis = "samples/s, more is better"
    shown = ranked(reached or groups, name)
    scale = scale_for([median(group, name) for group in shown], "s" if reached else "1")
    # Ends and repeats too, so that no panel needs an axis of its own.
    among = [value / scale.factor for group in shown for value in group.values(name)]
    for ranks in sorted({group.cell.ranks for group in shown})[:MOST_PANELS]:
        every = [group for group in groups if group.cell.ranks == ranks]
        own = [group for group in shown if group.cell.ranks == ranks]
        missed = len(every) - len(own) if reached else 0
        hollow = any(group.over_subscribed for group in own[:MOST])
        yield metric_chart(
            context, own, name,
            [
                label_column(group_labels(every, never=("ranks",)), "Framework and strategy"),
                *metric_columns(name, scale), ACCURACY, MARKS,
            ],
            scale=scale,
            right=lambda group: f"{scale.text(median(group, name))} {scale.unit}".strip(),
            title=f"{count(ranks, 'rank')}: {title}", axis=axis.format(scale.unit),
            name=f"frameworks-{workload}-{ranks}", about=workload, unit=scale.unit, most=MOST,
            among=among, log=log_is_better(among),
            notes=[
                f"{count(missed, 'cell')} missed the target in at least one run." if missed else "",
                "Hollow: more ranks than cores, no claim." if hollow else "",
            ],
        )  # fmt: skip
