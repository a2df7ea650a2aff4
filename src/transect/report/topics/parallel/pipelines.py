"""Section: ranks that share a model, beside ranks that share the data only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transect.analysis.contrasts import contrast
from transect.analysis.groups import Group
from transect.analysis.parallelism import STEP, best_of, divided, division, median_of, points
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Column, Explained, Heading, Lead, Part, digits, table, words
from transect.report.engine.charts.chart import MAX_PANELS
from transect.report.engine.columns import MARKS, NOT_TOLD, labelled, medians, metric_chart, metric_columns, ranked
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns
from transect.report.engine.text import clean, count, in_unit, percent, quantity, scale_for


def pipelines_body(context: Context) -> Iterator[Part]:
    """Draw and list every point at which ranks share a model; nothing without one."""
    found = [
        members
        for workload in context.workloads("train")
        for members in points(context.of("train", workload))
        if divided(members)
    ]
    if not found:
        return
    yield Lead(
        "Ranks that share one model, in stages, columns or strips, and replicas of those, beside the best way to share the "
        "data alone with the same framework, batch and number of ranks."
    )
    for number, members in enumerate(found):
        yield Heading(point_title(members))
        yield from _point(context, members, number)
    yield Explained(
        "Bubble: share of all ranks' steps in which a stage waits for its neighbours' results; beside it what P equal "
        "stages and M micro-batches have, (P − 1)/(M + P − 1)."
    )


def point_title(members: Sequence[TrainGroup]) -> str:
    """Name what groups of a point have in common."""
    cell = members[0].cell
    ranks = f"{cell.nodes}x{cell.ranks_per_node} ranks" if cell.nodes > 1 else count(cell.ranks, "rank")
    parts = [cell.workload, cell.framework, f"batch {cell.batch}", ranks]
    parts += [f"{cell.threads} threads each"] if cell.threads > 1 else []
    parts += [cell.network] if cell.network else []
    parts += [members[0].kind.words] if members[0].kind.words else []
    return clean(" · ".join(parts))


def _layout(group: TrainGroup) -> str | None:
    cut = division(group)
    return f"{cut.replicas} x {cut.parts}" if cut is not None else None


def _micro_batches(group: TrainGroup) -> int | None:
    cut = division(group)
    return cut.micro_batches if cut is not None and cut.parts > 1 else None


def _point(context: Context, members: Sequence[TrainGroup], number: int) -> Iterator[Part]:
    able = [group for group in members if not group.wrong]
    measured = ranked(able, STEP)
    label = labelled(members, "Strategy", never=("ranks", "nodes", "framework", "workload", "batch"))
    scale = scale_for([median_of(group, STEP) for group in measured], "s")
    columns: list[Column[Any]] = [
        words("Replicas x parts", _layout),
        digits("Micro-batches", _micro_batches),
        words("Schedule", lambda group: cut.schedule or None if (cut := division(group)) else None),
        *metric_columns(STEP, scale, "Step"),
    ]
    if number < MAX_PANELS:
        yield metric_chart(
            context,
            measured,
            STEP,
            label,
            columns,
            scale=scale,
            right=lambda group: quantity(median_of(group, STEP), "s"),
            title="Step time",
            axis=f"step ({scale.unit})",
            name=f"parts-{number}",
            about=point_title(members),
            first="Shortest",
            notes=["Hollow: ranks share cores, no claim."] if any(group.over_subscribed for group in measured) else [],
        )
    rival = best_of(
        group for group in able if group.cell.ranks > 1 and (cut := division(group)) is not None and cut.parts == 1
    )
    against = {
        id(group): contrast(group, rival, context.floors, STEP, varies="strategy", candidates=len(members))
        for group in members
        if rival is not None and group is not rival and not group.wrong
    }
    yield table(
        sorted(members, key=lambda group: (group.wrong, median_of(group, STEP) or float("inf"))),
        [
            label,
            *columns,
            *(
                contrast_columns(f"Beside {label.entry(rival)}", lambda group: against.get(id(group)))
                if rival is not None
                else []
            ),
            digits("Bubble", lambda group: median_of(group, "bubble"), percent),
            digits("of equal stages", _equal_stages, percent),
            medians("Waited", "communication_time", in_unit("s"), NOT_TOLD),
            medians("Overlap", "overlap", percent, NOT_TOLD),
            medians("Peak memory per rank", "peak_memory", in_unit("B")),
            words("Layers of each part", _layers),
            words("Reference", _reference),
            MARKS,
        ],
        caption="Shortest step first"
        + (
            ""
            if rival is not None
            else "; nothing shares the data alone on as many ranks, so there is no rival to stand beside"
        ),
    )


def _equal_stages(group: Group[Any]) -> float | None:
    cut = division(group)
    return cut.bubble if cut is not None else None


def _layers(group: TrainGroup) -> str | None:
    cut = division(group)
    if cut is None or not cut.stages:
        return None
    return ", ".join(" and ".join(f"{first}–{last - 1}" for first, last in held) for held in cut.stages)


def _reference(group: TrainGroup) -> Chip:
    ratios = [
        value
        for record in group.records
        for name in ("equality_ratio", "weights_equality_ratio")
        if (value := record.value(name)) is not None
    ]
    if group.wrong:
        return Chip("wrong result", "bad")
    if not group.ok:
        first = group.records[0]
        return Chip(first.cause.value if first.cause else "no result", "warn", first.message)
    return Chip("followed", "good") if ratios else Chip("not compared", "warn")
