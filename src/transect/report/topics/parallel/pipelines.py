"""Section: ranks that share a model, beside ranks that share the data only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from transect.analysis.groups import Group
from transect.analysis.parallelism import STEP, Beside, beside, best_of, divided, division, median_of, points
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Column, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.charts.chart import MAX_PANELS, dot_chart
from transect.report.engine.charts.marks import Dot
from transect.report.engine.columns import MARKS, NOT_TOLD, labelled, medians, metric_chart, metric_columns, ranked
from transect.report.engine.context import Context
from transect.report.engine.text import clean, count, in_unit, percent, quantity, scale_for, with_ends


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
        "Ranks that share one model: stages of a pipeline, columns and rows of its matrices, strips of "
        "its images; and hybrids, replicas of those. Each stands beside the best way to share the data "
        "alone that ran with the same framework, batch and number of ranks, and is held to a float64 "
        "reference that cuts its batches into the same replicas and micro-batches: one that leaves it is "
        "compared with nothing."
    )
    yield note(
        "Bubble: share of all ranks' steps in which a stage waits for its neighbours' results; beside it what "
        "P equal stages and M micro-batches have, (P − 1)/(M + P − 1). More than that comes of unequal "
        "stages, of messages, and of ranks that share cores."
    )
    for number, members in enumerate(found):
        yield Heading(point_title(members))
        yield from _point(context, members, number)


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
        yield _bubble_chart(context, measured, label, number, point_title(members))
    rival = best_of(
        group for group in able if group.cell.ranks > 1 and (cut := division(group)) is not None and cut.parts == 1
    )
    against = {
        id(group): beside(group, rival, context.floors)
        for group in members
        if rival is not None and group is not rival and not group.wrong
    }
    yield table(
        sorted(members, key=lambda group: (group.wrong, median_of(group, STEP) or float("inf"))),
        [
            label,
            *columns,
            *(beside_columns(against, str(label.entry(rival))) if rival is not None else []),
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


def beside_columns(against: dict[int, Beside | None], rival: str) -> list[Column[TrainGroup]]:
    """Return the columns of a ratio to a rival, by the group's identity: value, ends, verdict."""

    def of(group: TrainGroup) -> Beside | None:
        return against.get(id(group))

    def verdict(group: TrainGroup) -> Chip | None:
        found = of(group)
        if found is None:
            return None
        if found.over_subscribed:
            return Chip("open: shared cores", "warn", found.reason)
        if not found.shown:
            return Chip("open: within noise", "plain", found.reason)
        return Chip(
            "shorter" if found.ratio.value < 1 else "longer", "good" if found.ratio.value < 1 else "plain", found.reason
        )

    return [
        digits(f"Beside {rival}", lambda group: with_ends(found.ratio) if (found := of(group)) else None),
        words("Verdict", verdict),
    ]


def _bubble_chart(context: Context, groups: Sequence[Group[Any]], label: Column[Any], number: int, about: str) -> Part:
    """Draw the bubble of each pipeline beside that of equal stages; None where no rank waits so."""
    measured = [g for g in groups if median_of(g, "bubble") is not None and _equal_stages(g) is not None]
    measured.sort(key=lambda group: (median_of(group, "bubble") or 0.0, group.cell.id))

    def dot(group: TrainGroup) -> Dot:
        values = [100 * value for value in group.values("bubble")]
        middle, ideal = median_of(group, "bubble") or 0.0, _equal_stages(group) or 0.0
        return Dot(
            label=str(label.entry(group)),
            value=100 * middle,
            low=min(values),
            high=max(values),
            points=values,
            bound=100 * ideal,
            style=context.style(group),
            right=percent(middle),
            hollow=group.over_subscribed,
        )

    return dot_chart(
        measured,
        dot,
        [
            label,
            digits("Bubble", lambda group: median_of(group, "bubble"), percent),
            digits("of equal stages", _equal_stages, percent),
            digits("Runs", lambda group: len(group.values("bubble"))),
        ],
        title="Bubble",
        axis="% of all ranks' steps",
        name=f"bubble-{number}",
        about=about,
        first="Least",
        notes=["Upright mark: the bubble of equal stages."],
        log=False,
    )
