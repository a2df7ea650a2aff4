"""Ranks that share a model, beside ranks that share the data only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transect.analysis.contrasts import Contrast, contrast
from transect.analysis.parallelism import STEP, Division, best_of, divided, division, points, rivalries
from transect.analysis.scaling import TrainGroup
from transect.report.engine.blocks import Chip, Column, Explained, Heading, Lead, Part, digits, table, words
from transect.report.engine.columns import MARKS, NOT_TOLD, ended, labelled, medians, metric_columns
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import contrast_columns, doubt_words, ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import Writer, count, in_unit, percent, plain, quantity, scale_for
from transect.report.topics.parallel.words import scope_of, strategy_words


def pipeline_findings(context: Context) -> list[Finding]:
    """Per point: the best way to share a model beside the best way to share the data alone."""
    return [
        _rivalry(pair)
        for workload in context.workloads("train")
        for pair in rivalries(context.of("train", workload), context.floors, asked=context.asks("pipeline"))
    ]


def _rivalry(result: Contrast) -> Finding:
    best, rival, parts = result.group, result.base, division(result.group)
    assert parts is not None
    what = (
        f"{count(parts.replicas, 'replica')} of {parts.parts} parts"
        if parts.hybrid
        else f"one model in {parts.parts} parts"
    )
    bubble, overlap = median(best, "bubble"), median(best, "overlap")
    ideal = parts.bubble
    return Finding(
        subject=str(best.cell.workload),
        scope=scope_of(best),
        kind="pipeline",
        named=True,
        claim=f"{strategy_words(best)}, {what}, takes {ratio_words(result)} the step of "
        f"{strategy_words(rival)}, the best that shares the data alone{doubt_words(result)}.",
        confidence=limited_confidence(result.confidence, best, rival),
        evidence=joined(
            f"steps {quantity(median(best, 'step_time'), 's')} and {quantity(median(rival, 'step_time'), 's')}",
            f"bubble {percent(bubble)}" + (f", of equal stages {percent(ideal)}" if ideal is not None else "")
            if bubble is not None
            else "",
            f"{percent(overlap)} of its messages hide behind computing" if overlap is not None else "",
            result.reason,
        ),
        contrasts=(result,),
    )


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
    for members in found:
        yield Heading(scope_of(members[0], workload=True))
        yield from _point(context, members)
    yield Explained(
        "Bubble: share of all ranks' steps in which a stage waits for its neighbours' results; beside it what P equal "
        "stages and M micro-batches have, (P − 1)/(M + P − 1)."
    )


def _told(title: str, of: Callable[[Division], Any], write: Writer | None = None) -> Column[Any]:
    """Return a column of how ranks are laid out; empty where records do not say."""

    def value(group: TrainGroup) -> Any:
        cut = division(group)
        return of(cut) if cut is not None else None

    return words(title, value) if write is None else digits(title, value, write)


def _point(context: Context, members: Sequence[TrainGroup]) -> Iterator[Part]:
    able = [group for group in members if not group.wrong]
    label = labelled(members, "Strategy", never=("ranks", "nodes", "framework", "workload", "batch"))
    scale = scale_for([median(group, STEP) for group in able], "s")
    rival = best_of(
        group for group in able if group.cell.ranks > 1 and (cut := division(group)) is not None and cut.parts == 1
    )
    against = {
        id(group): contrast(group, rival, context.floors, STEP, varies="strategy", asked=context.asks("pipeline"))
        for group in members
        if rival is not None and group is not rival and not group.wrong
    }
    alone = "; nothing shares the data alone on as many ranks, so there is no rival to stand beside"
    yield table(
        sorted(members, key=lambda group: (group.wrong, median(group, STEP) or float("inf"))),
        [
            label,
            _told("Replicas x parts", lambda cut: f"{cut.replicas} x {cut.parts}"),
            _told("Micro-batches", lambda cut: cut.micro_batches if cut.parts > 1 else None, plain),
            _told("Schedule", lambda cut: cut.schedule or None),
            *metric_columns(STEP, scale, "Step"),
            *(
                contrast_columns(f"Beside {label.entry(rival)}", lambda group: against.get(id(group)))
                if rival is not None
                else []
            ),
            digits("Bubble", lambda group: median(group, "bubble"), percent),
            _told("of equal stages", lambda cut: cut.bubble, percent),
            medians("Waited", "communication_time", in_unit("s"), NOT_TOLD),
            medians("Overlap", "overlap", percent, NOT_TOLD),
            medians("Peak memory per rank", "peak_memory", in_unit("B")),
            _told("Layers of each part", _layers),
            words("Reference", _reference),
            MARKS,
        ],
        caption="Shortest step first" + (alone if rival is None else ""),
    )


def _layers(cut: Division) -> str | None:
    held = (" and ".join(f"{first}–{last - 1}" for first, last in parts) for parts in cut.stages)
    return ", ".join(held) or None


def _reference(group: TrainGroup) -> Chip:
    if group.wrong:
        return Chip("wrong result", "bad")
    if not group.ok:
        return ended(group.records[0])
    ratios = [*group.values("equality_ratio"), *group.values("weights_equality_ratio")]
    return Chip("followed", "good") if ratios else Chip("not compared", "warn")
