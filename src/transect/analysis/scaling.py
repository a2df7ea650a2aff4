"""Parallel efficiency with its base declared, superlinear values flagged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from transect.analysis.groups import Group
from transect.domain.axes.train import TrainCell
from transect.stats.estimates import ratio_of
from transect.stats.samples import NoiseFloor

METRIC = "samples_per_second"

TrainGroup = Group[TrainCell]


class ScalingKind(StrEnum):
    """What grew with the ranks."""

    STRONG = "strong"
    WEAK = "weak"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """Speed of a group against its base: `value` 1.0 means perfect use of the added ranks.

    `base_rate` and `rate` are medians in samples/s. `gain` is how many times the base's speed its own is, the ratio
    that comparisons of the two go by, and `value` what that is of the added ranks. `superlinear` is set when the value exceeds
    1 by more than the noise floor: then caches or a poor base, not the strategy, are at work.
    """

    group: TrainGroup
    base: TrainGroup
    kind: ScalingKind
    base_rate: float
    rate: float
    gain: float
    value: float
    superlinear: bool


def efficiencies(groups: Sequence[TrainGroup], floor: NoiseFloor | None) -> list[Efficiency]:
    """Efficiency of every group that has more ranks than its base.

    The base is the same framework with the same kind of training (precision, input, reduction of
    gradients, learning rate's rule), threads, device and global batch:
    strategy `single` on one rank, or else the same strategy on its fewest ranks. Without a base
    of the same global batch, one with the same batch per rank is taken (weak scaling). It uses the
    same network, or is on one node of a study that names no network for it.
    Over-subscribed and wrong groups are neither measured nor used as a base.
    """
    usable = [g for g in groups if not g.over_subscribed and not g.wrong and g.values(METRIC)]
    near = Neighbours(usable)
    gains = []
    for group in usable:
        base = _base(group, near.of(group))
        if base is None:
            continue
        rate, base_rate = group.summary(METRIC), base.summary(METRIC)
        if rate is None or base_rate is None or base_rate.median <= 0:
            continue
        ratio = ratio_of(group.counted(METRIC), base.counted(METRIC))
        gain = ratio.value if ratio is not None else rate.median / base_rate.median
        value = gain / (group.cell.ranks / base.cell.ranks)
        gains.append(
            Efficiency(
                group=group,
                base=base,
                kind=scaling_kind(group, base),
                base_rate=base_rate.median,
                rate=rate.median,
                gain=gain,
                value=value,
                superlinear=value > 1 + (floor.relative if floor else 0.0),
            )
        )
    return gains


class Neighbours:
    """Finds groups that one group may be measured against, without looking at all of them.

    They are of the same workload, framework, kind of training, threads and device, with the same
    global batch (strong scaling) or the same batch per rank (weak); a group is its own neighbour.
    """

    def __init__(self, groups: Iterable[TrainGroup]) -> None:
        self._found: dict[Hashable, list[TrainGroup]] = defaultdict(list)
        for group in groups:
            for key in _keys(group):
                self._found[key].append(group)

    def of(self, group: TrainGroup) -> list[TrainGroup]:
        """Return the group's neighbours, each once."""
        return list({id(neighbour): neighbour for key in _keys(group) for neighbour in self._found[key]}.values())


def _keys(group: TrainGroup) -> list[Hashable]:
    """Name the sets that a group is in: none without a known batch."""
    cell, batch = group.cell, group.global_batch
    if batch is None:
        return []
    alike = (cell.workload, cell.framework, group.kind, cell.threads, cell.device)
    return [(*alike, "strong", batch), (*alike, "weak", Fraction(batch, cell.ranks))]


def _base(group: TrainGroup, neighbours: Iterable[TrainGroup]) -> TrainGroup | None:
    cell, ranks = group.cell, group.cell.ranks
    near = [
        neighbour
        for neighbour in neighbours
        if neighbour.cell.ranks < ranks
        and (neighbour.cell.strategy == cell.strategy or neighbour.cell.ranks == 1)
        and (neighbour.cell.network == cell.network or crosses_none(neighbour))
        and scaling_kind(group, neighbour) is not ScalingKind.OTHER
    ]
    return min(
        near,
        key=lambda neighbour: (
            scaling_kind(group, neighbour) is not ScalingKind.STRONG,
            neighbour.cell.ranks,
            neighbour.cell.strategy != "single",
            neighbour.cell.strategy != cell.strategy,
            neighbour.cell.network != cell.network,
            neighbour.cell.id,
        ),
        default=None,
    )


def crosses_none(group: Group) -> bool:
    """Whether it is on one node of a study that names no network for it: a base of any."""
    return group.cell.nodes == 1 and group.cell.network is None


def scaling_kind(group: Group, base: Group) -> ScalingKind:
    """Return what grew with the ranks, seen from the base: nothing, or the global batch."""
    batch, base_batch = group.global_batch, base.global_batch
    if batch is None or base_batch is None:
        return ScalingKind.OTHER
    if batch == base_batch:
        return ScalingKind.STRONG
    if batch * base.cell.ranks == base_batch * group.cell.ranks:
        return ScalingKind.WEAK
    return ScalingKind.OTHER
