"""Finding on bounds: a cell above one shows that the bound is wrong, and no bound is drawn as if."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from transect.analysis.bounds import Bound, run_bound, step_bound
from transect.analysis.groups import Group
from transect.analysis.labels import group_labels
from transect.analysis.network import BOUND_NAME, communications
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, median, names
from transect.report.engine.text import clean, count, percent, quantity
from transect.stats.comparisons import Confidence

_SHOWN = 3
_STAGES = (("train", "step_time", "step", step_bound), ("infer", "latency", "run", run_bound))


class _Above(NamedTuple):
    """A cell that took less than its bound: `share` is the bound's time over its own."""

    cell_id: str
    label: str
    share: float
    bound: str
    times: str


def bound_findings(context: Context) -> list[Finding]:
    """Name the cells that are faster than a bound allows, and the bound; farthest first.

    Every usable cell that has a bound is compared with it, also those that are in no chart or other finding.
    """
    above = sorted([*_of_steps(context), *_of_communication(context)], key=lambda case: (-case.share, case.cell_id))
    if not above:
        return []
    listed = [f"{case.label} reaches {percent(case.share)} of {case.bound}" for case in above]
    claim = (
        f"{count(len(above), 'cell')} {'is' if len(above) == 1 else 'are'} faster than a bound "
        f"allows, so that bound is wrong: {names(listed, _SHOWN)}."
    )
    evidence = joined(
        *(f"{case.label}: {case.times}" for case in above[:_SHOWN]),
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
                sides = " and ".join(
                    f"{quantity(rate.value, of)} ({clean(rate.label or rate.benchmark)})"
                    for rate, of in ((bound.flops, "FLOP/s"), (bound.bandwidth, "B/s"))
                )
                times = f"{unit} {quantity(time, 's')}, bound {quantity(bound.time_s, 's')} from {sides}"
                yield _Above(group.cell.id, label, bound.time_s / time, _name(bound), times)


def _of_communication(context: Context) -> Iterator[_Above]:
    """Yield training cells that communicate in less time than their network takes."""
    labels = dict(_labelled(context, "train"))
    groups: list[Group[Any]] = list(labels)
    for row in communications(groups, context.network_fits) if context.network_fits else []:
        if row.ratio is not None and 0 < row.ratio < 1 and row.bound and row.fit:
            bound = f"the {BOUND_NAME} of {row.fit.cell.id.split('~')[0]}"
            times = f"communication {quantity(row.time.median, 's')}, bound {quantity(row.bound.time_s, 's')}"
            yield _Above(row.group.cell.id, labels[row.group], 1 / row.ratio, bound, times)


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
