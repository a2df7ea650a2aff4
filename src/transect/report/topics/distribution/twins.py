"""Cells that differ in one respect only: hyper-parameters, input, MPI library, or what the batch does to the rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from transect.analysis.contrast import Contrast
from transect.analysis.groups import grouped
from transect.analysis.labels import people_name, word
from transect.analysis.quality import reaches_target, score_of
from transect.analysis.scaling import METRIC, TrainGroup
from transect.domain.axes.train import TrainCell
from transect.domain.cell import axes_of
from transect.report.engine.context import Context
from transect.report.engine.contrast_words import basis_words, doubt_words, needs_words, ratio_words
from transect.report.engine.finding import Finding, joined, limited_confidence, median
from transect.report.engine.text import count, number, percent
from transect.report.topics.distribution.mpi_twins import mpi_findings
from transect.report.topics.ranks.published_series import SUMMING
from transect.report.topics.ranks.series import replicas
from transect.stats.comparisons import Confidence
from transect.stats.estimates import Estimate
from transect.stats.verdicts import Answer


def penalty(contrast: Contrast) -> Estimate:
    """Return what a group loses to its input: 1 - its rate over its synthetic twin's."""
    ratio = contrast.ratio
    return replace(ratio, value=1 - ratio.value, low=1 - ratio.high, high=1 - ratio.low)


def rate_factor(group: TrainGroup) -> float | None:
    """How many times the workload's own learning rate a step's mean gradient is taken, in the end.

    A sum over p ranks that train counts p times what their mean does; the linear rule multiplies by the
    global batch over the workload's own. None when the record does not hold that batch.
    """
    factor = float(replicas(group)) if group.cell.reduce == "sum" else 1.0
    if group.cell.learning_rate_rule == "none":
        return factor
    given = (record.parameters.get("batch") for record in group.records)
    own = next((batch for batch in given if isinstance(batch, int) and batch > 0), None)
    return factor * group.global_batch / own if own and group.global_batch else None


def _sum_twins(groups: Sequence[TrainGroup]) -> list[tuple[TrainGroup, TrainGroup]]:
    """Pair each group that sums with the one that takes the mean and differs in nothing else, most ranks first.

    On one rank both are the same training: no pair. A strategy that only sums has no such twin: its
    pair takes the mean on the same batches by another strategy, on as many ranks where there is one.
    """
    means = {group.cell: group for group in groups if not group.kind.summed}
    pairs = [
        (group, twin)
        for group in groups
        if group.kind.summed
        and group.cell.ranks > 1
        and not group.kind.synthetic
        and (twin := means.get(_mean_of(group.cell)) or _nearest(group, means)) is not None
    ]
    return sorted(pairs, key=lambda pair: (-pair[0].cell.ranks, pair[0].cell.id))


def _mean_of(cell: TrainCell) -> TrainCell:
    return cell.model_copy(update={"reduce": "mean"})


def _nearest(group: TrainGroup, means: Mapping[TrainCell, TrainGroup]) -> TrainGroup | None:
    """Return the mean on the same path by another strategy, where this one never takes it."""
    if not _published(group):
        return None
    alike = {"nodes": 1, "ranks_per_node": 1, "strategy": "", "network": None, "options": ()}
    wanted = _mean_of(group.cell).model_copy(update=alike)
    near = [mean for mean in means.values() if mean.cell.ranks > 1 and mean.cell.model_copy(update=alike) == wanted]
    ranks = group.cell.ranks
    return min(near, key=lambda mean: (abs(mean.cell.ranks - ranks), mean.cell.id), default=None)


def twin_findings(context: Context) -> list[Finding]:
    """Per workload: what other hyper-parameters bring, the largest penalty of input, other MPI libraries, and sum beside mean
    on the most ranks.
    """
    return [
        finding
        for workload in context.workloads("train")
        for finding in (
            *_hyperparameters(context, workload),
            *_input(context, workload),
            *mpi_findings(context, workload),
            *_sums(workload, context.of("train", workload)),
        )
    ]


def _changed(group: TrainGroup) -> str:
    return axes_of(TrainCell)["hyperparameters"].label(group.cell.hyperparameters)


def _hyperparameters(context: Context, workload: str) -> list[Finding]:
    """Say of each change that was compared whether the target is reached sooner with it, the largest gain first."""
    every = [
        made
        for made in context.contrasts.of("twin.hyperparameters", workload)
        if not made.over_subscribed and reaches_target(made.group) and reaches_target(made.base)
    ]
    found = []
    for made in sorted(every, key=lambda made: (made.cost.value, made.group.cell.id)):
        name = people_name(
            made.base.cell, [one.base.cell for one in every], always=("ranks",), never=("hyperparameters",)
        )
        changed = _changed(made.group)
        claim = (
            f"with {changed}, {name} reaches the target in {ratio_words(made)} the time that it takes with the workload's own "
            f"hyper-parameters{doubt_words(made)}"
        )
        found.append(
            Finding(
                subject=workload,
                claim=f"{claim}.",
                short=claim,
                evidence=joined(basis_words(made), made.reason),
                confidence=limited_confidence(made.confidence, made.group, made.base),
                kind="hyperparameters",
                contrasts=(made,),
                groups=(made.group, made.base),
            )
        )
    return [*found, *_missed(context, workload)]


def _missed(context: Context, workload: str) -> Iterator[Finding]:
    """Yield which changes do not reach the target in every run, and which do where the workload's own do not."""
    groups = [g for g in context.of("train", workload) if g.ok and not g.kind.synthetic]
    of_cell = {group.cell: group for group in groups}
    changes = [group for group in groups if group.cell.hyperparameters]
    missed = [group for group in changes if not reaches_target(group)]
    saved = [
        (group, own)
        for group in changes
        if reaches_target(group)
        and (own := of_cell.get(group.cell.model_copy(update={"hyperparameters": ()}))) is not None
        and not reaches_target(own)
    ]
    ends = (
        ("not every run reaches the target.", missed, missed),
        (
            "every run reaches the target; with the workload's own hyper-parameters not every one does.",
            [group for group, _ in saved],
            [group for pair in saved for group in pair],
        ),
    )
    for end, told, about in ends:
        if told:
            yield Finding(
                subject=workload,
                claim=f"with {'; with '.join(sorted(set(map(_changed, told))))} {end}",
                evidence=count(sum(len(group.ok) for group in about), "run"),
                confidence=Confidence.PROVISIONAL,
                kind="hyperparameters",
                groups=tuple(dict.fromkeys(about)),
            )


def _input(context: Context, workload: str) -> list[Finding]:
    every = [loss for loss in context.contrasts.of("twin.input", workload) if not loss.over_subscribed]
    if not every:
        return []
    top = max(every, key=lambda loss: (penalty(loss).value, loss.group.cell.id))
    name = people_name(top.group.cell, [loss.group.cell for loss in every], always=("ranks",), never=("input",))
    what = "decoding files" if top.group.cell.get("input") == "files" else "input from stored arrays"
    if top.better is top.base:
        claim = f"{what} costs {name} {percent(penalty(top).value, 1)} of its speed on random numbers"
    elif top.answer is Answer.SAME:
        claim = f"{name} is as fast with {what} as on random numbers, within {percent(top.comparison.margin)}"
    elif top.shown:
        claim = f"{name} is faster with {what} than on random numbers: look at its twin"
    else:
        claim = f"whether {what} costs {name} anything is not known{needs_words(top)}"
    more = f", the most of {len(every)} pairs" if len(every) > 1 and top.shown else ""
    return [
        Finding(
            subject=workload,
            claim=f"{claim}{more}.",
            short=claim,
            evidence=joined(
                f"{number(median(top.group, METRIC) or 0)} against {number(median(top.base, METRIC) or 0)} samples/s",
                basis_words(top),
                top.reason,
            ),
            confidence=limited_confidence(top.confidence, top.group, top.base),
            kind="input",
            contrasts=tuple(every),
            groups=(top.group, top.base),
        )
    ]


def _sums(workload: str, groups: list[TrainGroup]) -> Iterator[Finding]:
    """Yield a finding of what is summed for comparison, and one of each strategy that was published so."""
    found = grouped(_sum_twins(groups), lambda pair: _published(pair[0]))
    for published in sorted(found):
        pairs = found[published]
        cells = [group.cell for pair in pairs for group in pair]
        summed, mean = next((pair for pair in pairs if pair[1].ok and not pair[1].wrong), pairs[0])
        label, factor = people_name(summed.cell, cells, always=("ranks",), never=("reduce",)), rate_factor(summed)
        told = partial(Finding, subject=workload, kind="reduction")
        # One rank that trains is no sum: its path is the mean's.
        if summed.ok and factor != 1:
            claim, evidence = (
                _summed(label, summed, mean, factor or summed.cell.ranks),
                (
                    f"sum against mean in {count(len(pairs), 'pair')} of the same start, batches and learning "
                    "rate, each held against a reference that sums or averages alike"
                ),
            )
            more = (
                "; the published Go study sums, so its training changes with the number of ranks" if published else ""
            )
            # Repeats start alike in pairs: likely when all of them move the same way.
            ends = [group.by_repeat("final_loss") for group in (summed, mean)]
            moves = {ends[0][repeat] > ends[1][repeat] for repeat in ends[0].keys() & ends[1].keys()}
            confidence = Confidence.PROVISIONAL if len(moves) == 1 else Confidence.INCONCLUSIVE
            yield told(claim=claim, evidence=evidence + more, confidence=confidence)
        elif summed.wrong and not summed.ok:
            cause = next((r.cause.value for r in summed.records if r.cause), "wrong result")
            yield told(
                claim=f"{label} with the sum of gradients instead of their mean: {cause}.",
                evidence=next((r.message for r in summed.records if r.message), cause).split("\n")[0][:160],
                confidence=Confidence.PROVISIONAL,
                named=True,
            )


def _published(group: TrainGroup) -> str:
    """Return the strategy that sums because it was published so, or nothing."""
    return group.cell.strategy if group.cell.strategy in SUMMING else ""


def _summed(label: str, summed: TrainGroup, mean: TrainGroup, factor: float) -> str:
    def beside(name: str) -> str:
        values = [median(group, name) for group in (summed, mean)]
        return " instead of ".join("an unknown value" if value is None else number(value) for value in values)

    counts = f"every step counts {number(factor)} times"
    claim = (
        f"{label} sums without a mean, as published: effective rate x {number(factor)}, {counts}; beside the mean by "
        f"{word('strategy', mean.cell.strategy)} the loss ends at {beside('final_loss')}"
        if _published(summed)
        else f"the sum of gradients takes {label} along another path than their mean: {counts}, the loss ends at "
        f"{beside('final_loss')}"
    )
    score = score_of([summed])
    if median(summed, score.name) is not None:
        claim += f" and the {score.words} at {beside(score.name)}"
    steps = [median(group, "steps_to_quality") if reaches_target(group) else None for group in (summed, mean)]
    first, second = ("not at all" if step is None else f"after {number(step)} steps" for step in steps)
    reached = f"the target is reached {first}, with the mean {second}"
    if steps == [None, None]:
        reached = "neither reaches the target in every run"
    return f"{claim}; {reached}. A speed-up to quality that grows with a sum is partly that of the rate."
