"""Training and inference groups as points of a roofline (Williams et al., CACM 52(4), 2009)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from transect.analysis.bounds import Bound, Rates, run_bound, step_bound
from transect.analysis.groups import Group
from transect.stats.samples import Summary

_TIME = {"train": "step_time", "infer": "latency"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RooflinePoint:
    """One group below its roof, all numbers of one node.

    `flops` and `bytes` of one step (or run) of all ranks on the node, `time` in s, `threads` those
    that they use together.
    """

    group: Group
    flops: float
    bytes: float
    time: Summary
    threads: int
    bound: Bound

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes

    @property
    def achieved(self) -> float:
        """FLOP/s at the median time."""
        return self.flops / self.time.median

    @property
    def roof(self) -> float:
        """FLOP/s that its bound allows: the peak rate, or the memory bandwidth at this intensity."""
        return self.flops / self.bound.time_s

    @property
    def share(self) -> float:
        """Achieved over allowed: the bound's time over the measured one."""
        return self.achieved / self.roof


def roofline_points(groups: Iterable[Group], rates: Rates) -> tuple[list[RooflinePoint], dict[str, int]]:
    """Return the points of usable groups, and how many groups were left out for which reason.

    A group without any usable repeat is no cell to draw and is not counted.
    """
    points, left_out = [], Counter[str]()
    for group in groups:
        if group.ok and not group.wrong:
            point = _point(group, rates)
            if isinstance(point, str):
                left_out[point] += 1
            else:
                points.append(point)
    return points, dict(sorted(left_out.items()))


def _point(group: Group, rates: Rates) -> RooflinePoint | str:
    cell, train = group.cell, group.cell.stage == "train"
    if group.over_subscribed:
        return "over-subscribed"
    if group.kind.synthetic:
        return "on synthetic input"
    if cell.device != "cpu" or cell.get("provider") not in (None, "cpu"):
        return "not on a CPU"
    unit, share = ("step", cell.ranks_per_node) if train else ("run", 1)
    flops, size = group.detail(f"flops_per_{unit}"), group.detail(f"bytes_per_{unit}")
    time = group.summary(_TIME[cell.stage])
    if not flops or not size or time is None or time.median <= 0:
        return "without a count of operations or a time"
    bound = step_bound(group, rates) if train else run_bound(group, rates)
    if bound is None:
        return "without benchmarks of the same number of threads and precision"
    return RooflinePoint(
        group=group, flops=share * flops, bytes=share * size, time=time, threads=share * cell.threads, bound=bound
    )
