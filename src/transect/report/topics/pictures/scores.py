"""How the score of each way of training gets better with the seconds that it takes, beside the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from transect.analysis.entries import AnyRecord
from transect.analysis.quality import TIME, Score, quality_target, score_of
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Part, digits, words
from transect.report.engine.charts.chart import drawn
from transect.report.engine.charts.layers import log_is_better
from transect.report.engine.charts.lines import line_plot
from transect.report.engine.charts.marks import Line
from transect.report.engine.columns import medians, ranked, score_column
from transect.report.engine.context import Context
from transect.report.engine.text import clean, scale_for
from transect.report.topics.pictures.front import main_groups
from transect.report.topics.training.words import namer

_MAX_PANELS, _MAX_LINES, _POINTS = 6, 24, 60
# Epochs of a curve.
_FEWEST = 3


def score_charts(context: Context) -> Iterator[Part]:
    """Draw a chart for each workload whose runs kept their scores."""
    for workload in context.workloads("train")[:_MAX_PANELS]:
        yield _chart(context, workload, main_groups(context, workload))


def _chart(context: Context, workload: str, groups: Sequence[TrainGroup]) -> Part:
    # Those that are there first are named; then those that train fastest.
    ordered = ranked(groups, TIME)
    ordered += [group for group in ranked(groups, "step_time") if group not in ordered]
    score = score_of(groups)
    curves = {group: points for group in ordered[:_MAX_LINES] if (points := curve(context, group, score))}
    if not curves:
        return None
    ends = [points[place][0] for points in curves.values() for place in (0, -1)]
    scale = scale_for(ends, "s")
    name = namer([*curves])
    facts = [
        quality for group in groups for r in group.records if isinstance(quality := r.details.get("quality"), dict)
    ]
    target = next((float(value) for known in facts if isinstance(value := known.get("target"), (int, float))), None)
    lines = [
        Line(
            points=[(x / scale.factor, y) for x, y in points],
            style=context.style(group),
            symbols=False,
            name=clean(name(group.cell)),
            about=group,
        )
        for group, points in curves.items()
    ]
    there = sum(len(group.values(TIME)) == len(group.ok) for group in groups)
    reached = f"{there} of {len(groups)} ways" if 0 < there < len(groups) else "each way" if there else "no way"
    return drawn(
        line_plot(
            lines,
            x_title=f"time of training ({scale.unit})",
            y_title=clean(f"{'least' if score.lower else 'best'} {score.words} on the test set so far"),
            x_log=log_is_better(ends),
            y_zero=False,
            rule=target,
            rule_name="" if target is None else f"target {target:g}",
            height=250,
        ),
        list(curves),
        [
            words("What", lambda group: name(group.cell)),
            medians(f"Time to the target ({scale.unit})", TIME, scale, "not in every run"),
            score_column([*curves]),
            digits("Runs", lambda group: len(group.ok)),
        ],
        title=f"{workload}: {reached} gets to {quality_target(groups)} in every run",
        name=f"score-{workload}",
        notes=["A line is the middle quiet run of a way; farther left is sooner."],
    )


def curve(context: Context, group: TrainGroup, score: Score) -> list[tuple[float, float]]:
    """Return the best score so far at the end of each epoch, over seconds, of a group's middle quiet run."""
    record = _middle(group)
    if record is None:
        return []
    scores, ends = (context.originals.samples(record, name) for name in (score.name, "epoch_end"))
    best = accumulate(scores, min if score.lower else max)
    points = [(x, y) for x, y in zip(ends, best, strict=False) if x > 0]
    if len(points) < _FEWEST or any(b[0] < a[0] for a, b in pairwise(points)):
        return []
    return [*points[: -1 : -(-len(points) // _POINTS)], points[-1]]


def _middle(group: TrainGroup) -> AnyRecord | None:
    """Return the undisturbed run whose time is the middle one, of all runs where none is undisturbed."""
    name = TIME if group.values(TIME) else "step_time"
    quiet = [record for record in group.ok if not record.details.get("disturbed")] or list(group.ok)
    known = sorted((value, record.repeat, record) for record in quiet if (value := record.value(name)) is not None)
    return known[(len(known) - 1) // 2][2] if known else None
