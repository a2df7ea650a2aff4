"""Trainings over ranks beside what others published: speed-ups with their bases, and where they stop.

What grows is the number of ranks with an equal batch on each, as was published, so that each takes fewer steps.
A point's time is that of one sample, the step over the global batch: an epoch's without its tests, and the same
for every size of the data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from transect.analysis.groups import grouped
from transect.analysis.network import NetworkFit, allreduce_bound, fit_for
from transect.analysis.parallelism import STEP, division
from transect.analysis.scaling import TrainGroup
from transect.domain.claims import Work
from transect.report.engine.finding import median as median_of
from transect.report.topics.ranks.amdahl import SerialPart, serial_part
from transect.report.topics.ranks.published_series import SUMMING, PublishedSeries, published_series
from transect.stats.noise import middle


@dataclass(frozen=True, kw_only=True, slots=True)
class RankPoint:
    """One number of ranks: `times` in any one unit, in `group` where it was measured here."""

    ranks: int
    training: int
    times: tuple[float, ...]
    group: TrainGroup | None = None
    hollow: bool = False

    @property
    def time(self) -> float:
        """The median."""
        return median(self.times)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """Where a series is fastest: `speed_up` over its base of `base` ranks, and why it gets no faster.

    `ideal` is what as many times the training ranks would give. `faster`: each of its runs beats each of the base.
    """

    base: int
    fastest: int
    speed_up: float
    ideal: float
    faster: bool
    reason: str

    @property
    def efficiency(self) -> float:
        """The speed-up over the ideal one."""
        return self.speed_up / self.ideal


@dataclass(frozen=True, kw_only=True, slots=True)
class RankSeries:
    """One line: ranks in ascending order. `published` is what it is, or None for cells of this study."""

    points: tuple[RankPoint, ...]
    serial: SerialPart
    stop: Stop
    published: PublishedSeries | None = None

    @property
    def group(self) -> TrainGroup | None:
        """A group of it that has several ranks: what names its line."""
        return self.points[-1].group

    def scaled(self, base: int) -> list[tuple[RankPoint, list[float]]]:
        """Return each point's times over the median at `base` ranks, or at the first point without it."""
        start = next((point for point in self.points if point.ranks == base), self.points[0])
        return [(point, [time / start.time for time in point.times]) for point in self.points]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What was published of one network, and the series of this study's cells with it.

    `differs` says in which hyper-parameters these are other work; without any they are the same, as far as was published.
    """

    name: str
    workload: str
    published: tuple[RankSeries, ...]
    measured: tuple[RankSeries, ...]
    differs: tuple[str, ...] = ()

    @property
    def first(self) -> int:
        """The fewest ranks of which a time was published: what lines are scaled to."""
        return min(series.published.first for series in self.published if series.published)


def problems(groups: Iterable[TrainGroup], fits: Sequence[NetworkFit], works: Iterable[Work]) -> list[Problem]:
    """Return what was published, where the study has a series of the same network; in order of publication."""
    by_workload = grouped((g for g in groups if g.ok and not g.wrong), lambda g: g.cell.workload)
    found = []
    for (name, workload), ours in grouped(published_series(works), lambda one: (one.problem, one.workload)).items():
        ways = {"single", *(name for series in ours for name in series.strategies)}
        able = [g for g in by_workload.get(workload, []) if g.cell.strategy in ways and _as_usual(g)]
        measured = _series(able, ours[0].per_rank, fits)
        if measured:
            found.append(
                Problem(
                    name=name,
                    workload=workload,
                    measured=tuple(measured),
                    published=tuple(_published(series) for series in ours),
                    differs=tuple(ours[0].differences(_parameters(measured))),
                )
            )
    return found


def _parameters(measured: Sequence[RankSeries]) -> Iterator[Mapping[str, Any]]:
    points = (point for series in measured for point in series.points)
    return (record.parameters for point in points if point.group for record in point.group.records)


def _published(series: PublishedSeries) -> RankSeries:
    points = tuple(
        RankPoint(ranks=ranks, training=ranks - series.idle, times=(minutes,))
        for ranks, minutes in sorted(series.minutes.items())
    )
    stop = _stop(points, "how its time divides was not published")
    return RankSeries(points=points, serial=_serial(points), stop=stop, published=series)


def _as_usual(group: TrainGroup) -> bool:
    """Whether it changes rates and sums no more than its strategy does: a line for each way is enough."""
    cell = group.cell
    summing = cell.reduce == "sum" and cell.strategy not in SUMMING
    return cell.learning_rate_rule == "none" and not summing and not group.kind.synthetic


def replicas(group: TrainGroup) -> int:
    """Return how many ranks, or groups of them, train on data of their own."""
    layout = division(group)
    return layout.replicas if layout is not None else group.cell.ranks


def _series(groups: Sequence[TrainGroup], per_rank: int, fits: Sequence[NetworkFit]) -> list[RankSeries]:
    """Part the groups of one workload that have `per_rank` samples on each training rank by line."""
    able = [group for group in groups if group.values("step_time") and group.global_batch == per_rank * replicas(group)]

    def way(group: TrainGroup) -> tuple[Hashable, ...]:
        cell = group.cell
        placement = (cell.ranks_per_node if cell.nodes > 1 else 0, cell.network)
        return (cell.framework, cell.strategy, cell.options, cell.threads, cell.device, group.kind, *placement)

    alone = {_alone(g): g for g in able if g.cell.strategy == "single"}
    found = []
    for members in grouped((g for g in able if g.cell.strategy != "single"), way).values():
        # Every way of one framework begins with the one that has nobody to talk to.
        first = alone.get(_alone(members[0]))
        start = [] if first is None or any(g.cell.ranks == 1 for g in members) else [first]
        points = tuple(_point(g) for g in sorted([*start, *members], key=lambda g: g.cell.ranks))
        if len(points) > 1:
            found.append(_measured(points, fits))
    return found


def _alone(group: TrainGroup) -> Hashable:
    """Name what a way shares with one rank: on one, a sum or a scaled rate are nothing of their own."""
    cell = group.cell
    return (cell.framework, cell.threads, cell.device, cell.precision, cell.input, cell.memory, cell.hyperparameters)


def _point(group: TrainGroup) -> RankPoint:
    return RankPoint(
        ranks=group.cell.ranks,
        training=replicas(group),
        times=tuple(value / group.cell.batch for value in group.counted(STEP)) if group.cell.batch else (),
        group=group,
        hollow=group.over_subscribed,
    )


def _measured(points: tuple[RankPoint, ...], fits: Sequence[NetworkFit]) -> RankSeries:
    able = tuple(point for point in points if not point.hollow)
    serial = _serial(able)
    if len(able) < 2:
        serial = replace(
            serial, share=None, low=0.0, high=1.0, reason="one number of ranks within the cores tells nothing"
        )
    # Beyond the cores nothing is claimed; a series that has no other points is shown all the same.
    stop = _stop(able if len(able) > 1 else points, "")
    return RankSeries(points=points, serial=serial, stop=replace(stop, reason=_reason(points, stop, fits)))


def _serial(points: Sequence[RankPoint]) -> SerialPart:
    return serial_part((point.training, time) for point in points for time in point.times)


def _stop(points: Sequence[RankPoint], reason: str) -> Stop:
    base = points[0]
    fastest = min(points, key=lambda point: (middle(point.times), point.ranks))
    return Stop(
        base=base.ranks,
        fastest=fastest.ranks,
        speed_up=middle(base.times) / middle(fastest.times),
        ideal=fastest.training / base.training,
        faster=max(fastest.times) < min(base.times),
        reason=reason,
    )


def _reason(points: Sequence[RankPoint], stop: Stop, fits: Sequence[NetworkFit]) -> str:
    """Say what keeps a measured series from getting faster: shared cores, waiting, or nothing yet."""
    beyond = [point for point in points if point.ranks > stop.fastest]
    crowded = [point.ranks for point in points if point.hollow]
    if not beyond:
        shared = ", which share cores" if crowded and crowded[-1] == stop.fastest else ""
        return f"it is fastest on its most ranks{shared}"
    following = beyond[0]
    reasons: list[str] = []
    if following.hollow:
        reasons.append(f"from {following.ranks} ranks on they share cores, so nothing computes faster")
    if (waits := _waits(following, points, fits)) is not None:
        reasons.append(waits)
    return "; ".join(reasons) or f"{following.ranks} ranks are slower, and no part of their step says why"


def _waits(point: RankPoint, points: Sequence[RankPoint], fits: Sequence[NetworkFit]) -> str | None:
    """Say what share of a step is waiting, and what the network alone would cost."""
    group = point.group
    share = median_of(group, "communication_share") if group is not None else None
    if group is None or share is None:
        return None
    reason = f"{point.ranks} ranks wait for messages in {100 * share:.0f} % of a step"
    fit, size = fit_for(group.cell, fits), median_of(group, "gradient_bytes")
    waited = median_of(group, "communication_time")
    if fit is None or size is None or not waited:
        return f"{reason}; without a network probe nothing says how much of it is the network's"
    nodes = group.cell.nodes if group.cell.nodes > 1 else group.cell.ranks
    bound = allreduce_bound(fit.model, size, nodes)
    alone = next((median_of(p.group, "step_time") for p in points if p.group and p.training == 1), None)
    reason += f", {waited / bound.time_s:.3g} times the {bound.kind} bound of an all-reduce"
    if waited < bound.time_s:
        return f"{reason}: less than the bound allows, so the probe or its fit is off"
    if alone:
        best = point.training * alone / (alone + bound.time_s)
        reason += f", which alone would leave a speed-up of {best:.3g}"
    return reason
