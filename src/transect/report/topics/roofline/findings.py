"""Finding on bounds: a cell above one shows that the bound is wrong, and no bound is drawn as if."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from transect.analysis.bounds import Bound, Rate, run_bound, step_bound
from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.analysis.network import BOUND_NAME, communications
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, median, names
from transect.report.engine.text import clean, count, percent, quantity
from transect.stats.comparisons import Confidence

_SHOWN = 3
_STAGES = (("train", "step_time", "step", step_bound), ("infer", "latency", "run", run_bound))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Above:
    """A group that took less than its bound: `share` is the bound's time over its own."""

    group: Group
    label: str
    share: float
    bound: str
    evidence: str


def bound_findings(context: Context) -> list[Finding]:
    """Name the cells that are faster than a bound allows, and the bound; farthest first.

    Every usable cell that has a bound is compared with it, also those that are in no chart or other finding.
    """
    above = [*_of_steps(context), *_of_communication(context)]
    if not above:
        return []
    above.sort(key=lambda case: (-case.share, case.group.cell.id))
    listed = [f"{case.label} reaches {percent(case.share)} of {case.bound}" for case in above]
    claim = (
        f"{count(len(above), 'cell')} {'is' if len(above) == 1 else 'are'} faster than a bound "
        f"allows, so that bound is wrong: {names(listed, _SHOWN)}."
    )
    evidence = joined(
        *(case.evidence for case in above[:_SHOWN]),
        "either the benchmark did not reach what the machine gives, or more was counted than "
        "has to be done; no distance from such a bound means anything",
    )
    return [Finding(subject="study", claim=claim, evidence=evidence, confidence=Confidence.CONFIRMED, kind="bound")]


def _of_steps(context: Context) -> Iterator[_Above]:
    """Yield training and inference cells above the roofline of their machine."""
    for stage, metric, unit, bound_of in _STAGES:
        for group, label in _labelled(context, stage):
            time, bound = median(group, metric), bound_of(group, context.rates)
            if time and bound is not None and bound.time_s > time:
                yield _Above(
                    group=group,
                    label=label,
                    share=bound.time_s / time,
                    bound=_name(bound),
                    evidence=f"{label}: {unit} {quantity(time, 's')}, bound "
                    f"{quantity(bound.time_s, 's')} from {_rate(bound.flops, 'FLOP/s')} and "
                    f"{_rate(bound.bandwidth, 'B/s')}",
                )


def _of_communication(context: Context) -> Iterator[_Above]:
    """Yield training cells that communicate in less time than their network takes."""
    labels = dict(_labelled(context, "train"))
    groups: list[Group[Any]] = list(labels)
    for row in communications(groups, context.network_fits) if context.network_fits else []:
        if row.ratio is not None and 0 < row.ratio < 1 and row.bound and row.fit:
            yield _Above(
                group=row.group,
                label=labels[row.group],
                share=1 / row.ratio,
                bound=f"the {BOUND_NAME} of {row.fit.cell.id.split('~')[0]}",
                evidence=f"{labels[row.group]}: communication {quantity(row.time.median, 's')}, "
                f"bound {quantity(row.bound.time_s, 's')}",
            )


def _labelled(context: Context, stage: str) -> Iterable[tuple[Group, str]]:
    """Yield usable groups with a label that begins with their workload."""
    for workload in context.workloads(stage):
        groups = [group for group in context.of(stage, workload) if group.ok and not group.wrong]
        labels = group_labels(groups, always=("ranks",) if stage == "train" else ("threads",))
        for group in groups:
            yield group, f"{workload} {labels[group.cell]}"


def _name(bound: Bound) -> str:
    rate = bound.flops if bound.kind == "arithmetic" else bound.bandwidth
    side = "peak FLOP/s" if bound.kind == "arithmetic" else bound.kind
    return f"the {side} of {clean(rate.benchmark)} with {count(rate.threads, 'thread')}"


def _rate(rate: Rate, unit: str) -> str:
    return f"{quantity(rate.value, unit)} ({clean(rate.label or rate.benchmark)})"
