"""Which layers go to which devices: the problem, and what an answer costs.

Devices stand in a row. A stage holds the layers [i, j) on r devices that follow one another; stages follow one
another too, and all devices are used. With M micro-batches a step takes

    (M - 1) max_k t_k  +  sum_k s_k  +  max_k e_k

| | |
|---|---|
| s_k | forward and backward of one micro-batch through stage k, and both messages over the boundary behind it: activations, and the gradient that comes back |
| t_k | how often stage k can take one: its computing and the messages on both of its boundaries, divided by r, as its replicas take turns. Messages are not hidden behind computing |
| e_k | the end of the step: its update, and the sum of its gradients over its replicas |

The first two terms are the fill, the steady state and the drain of a pipeline (Y. Huang et al., "GPipe", 2019; D. Narayanan
et al., "PipeDream", 2019); the last one is an upper bound, as early stages are still at work when late ones sum. A message
of n bytes takes alpha + beta n; a sum over p devices 2 ceil(log2 p) alpha + 2 (p - 1)/p beta n (R. Thakur et al.,
"Optimization of collective communication operations in MPICH", 2005).

A stage holds `copies` arrays as large as its weights, and what its layers keep of every micro-batch that is live: all M
(GPipe), or as many as there are stages from it to the end (1F1B; with replicas the devices from it to the end, divided
by its own and rounded up, as in PipeDream).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from transect.domain.errors import BadInput
from transect.planner.costs import LayerCosts

Schedule = Literal["gpipe", "1f1b"]


class Link(NamedTuple):
    """What a message costs: seconds, and seconds for each byte."""

    alpha_s: float
    beta_s_per_byte: float

    def seconds(self, size: float) -> float:
        """Return how long a message of `size` bytes takes."""
        return self.alpha_s + self.beta_s_per_byte * size


_FREE = Link(0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Layers with their costs for one micro-batch, and the row of devices.

    `link`: one for all boundaries between neighbours, or one for each (`devices` - 1). `speeds`: of each device,
    relative to the one that costs are of. `memory_bytes`: what one device has, or each; None: no limit.
    `replicas`: the whole row stands that often, and gradients are summed over `replica_link`. `spread`: whether
    a stage may have several devices; else each has one.
    """

    layers: tuple[LayerCosts, ...]
    devices: int
    micro_batches: int = 1
    schedule: Schedule = "1f1b"
    memory_bytes: int | tuple[int, ...] | None = None
    link: Link | tuple[Link, ...] = _FREE
    speeds: tuple[float, ...] = ()
    copies: int = 2
    replicas: int = 1
    replica_link: Link = _FREE
    spread: bool = False

    def __post_init__(self) -> None:
        if min(self.devices, self.micro_batches, self.replicas, self.copies) < 1 or not self.layers:
            raise BadInput("a partition has at least 1 layer, device, micro-batch, replica and copy")
        for name, given, wanted in (
            ("speeds", self.speeds or (1.0,) * self.devices, self.devices),
            ("memory_bytes", self._each(self.memory_bytes, self.devices), self.devices),
            ("link", self.links, self.devices - 1),
        ):
            if len(given) != wanted:
                raise BadInput(f"{name}: expected {wanted} values, got {len(given)}")
        if any(speed <= 0 for speed in self.speeds):
            raise BadInput(f"speeds: expected numbers above 0, got {self.speeds}")

    @staticmethod
    def _each(given: object, count: int) -> tuple[object, ...]:
        return given if isinstance(given, tuple) else (given,) * count

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The link behind each device but the last."""
        one = isinstance(self.link, Link)
        return (self.link,) * (self.devices - 1) if one else self.link  # type: ignore[return-value]

    @cached_property
    def memories(self) -> tuple[float, ...]:
        """Bytes of each device; infinite where there is no limit."""
        each = self._each(self.memory_bytes, self.devices)
        return tuple(float("inf") if size is None else float(size) for size in each)  # type: ignore[arg-type]

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.layers)

    def live(self, device: int, devices: int) -> int:
        """Return the most micro-batches that a stage from `device` on, on `devices`, has begun and not ended."""
        if self.schedule == "gpipe":
            return self.micro_batches
        return min(self.micro_batches, -(-(self.devices - device) // devices))

    @cached_property
    def _sums(self) -> dict[str, np.ndarray]:
        names = ("compute_s", "update_s", "weight_bytes", "kept_bytes")
        rows = {name: [getattr(layer, name) for layer in self.layers] for name in names}
        return {name: np.concatenate([[0.0], np.cumsum(row)]) for name, row in rows.items()}

    def _between(self, name: str) -> np.ndarray:
        """Return (n + 1, n + 1): the sum over the layers [i, j)."""
        sums = self._sums[name]
        found: np.ndarray = sums[None, :] - sums[:, None]
        return found

    def _messages(self, boundary: int) -> np.ndarray:
        """Return (n + 1,): both messages over the link behind device `boundary`, when the cut is at i."""
        found = np.zeros(self.count + 1)
        if 0 <= boundary < self.devices - 1:
            sizes = np.array([layer.out_bytes for layer in self.layers[:-1]], float)
            found[1:-1] = 2 * (self.links[boundary].alpha_s + self.links[boundary].beta_s_per_byte * sizes)
        return found

    def _sum_s(self, device: int, devices: int, sizes: np.ndarray) -> np.ndarray:
        ranks = devices * self.replicas
        if ranks == 1:
            return np.zeros_like(sizes)
        ways = list(self.links[device : device + devices - 1])
        ways += [self.replica_link] if self.replicas > 1 else []
        alpha = max(link.alpha_s for link in ways)
        beta = max(link.beta_s_per_byte for link in ways)
        times = 2 * (ranks - 1).bit_length() * alpha + 2 * (ranks - 1) / ranks * beta * sizes
        return np.where(sizes > 0, times, 0.0)

    def placements(self) -> Iterator[tuple[int, int]]:
        """Yield first device and number of devices of every stage that there may be."""
        for device in range(self.devices):
            most = self.devices - device if self.spread else 1
            for devices in range(1, most + 1):
                yield device, devices

    @cached_property
    def tables(self) -> dict[tuple[int, int], StageTable]:
        """Costs of all stages by first device and number of devices."""
        return {place: self._table(*place) for place in self.placements()}

    def _table(self, device: int, devices: int) -> StageTable:
        used = slice(device, device + devices)
        speed = min(self.speeds[used]) if self.speeds else 1.0
        compute = self._between("compute_s") / speed
        before, behind = self._messages(device - 1), self._messages(device + devices - 1)
        weights = self._between("weight_bytes")
        memory = self.copies * weights + self.live(device, devices) * self._between("kept_bytes")
        n = self.count
        places = np.arange(n + 1)
        fits = (places[None, :] > places[:, None]) & (memory <= min(self.memories[used]))
        # The first device takes the first layer and no other one does, and so at the end.
        fits[1 if device == 0 else n + 1 :, :] = False
        if device > 0:
            fits[0, :] = False
        last = device + devices == self.devices
        fits[:, : n if last else 0] = False
        if not last:
            fits[:, n] = False
        return StageTable(
            time_s=(compute + before[:, None] + behind[None, :]) / devices,
            through_s=compute + behind[None, :],
            end_s=self._between("update_s") / speed + self._sum_s(device, devices, weights),
            memory=memory,
            fits=fits,
        )

    def solution(self, stages: Sequence[tuple[int, int, int]], solver: str) -> Solution:
        """Return what stages (first layer, last layer, devices), from the first device on, cost."""
        found, device = [], 0
        times = []
        for first, last, devices in stages:
            table = self.tables[device, devices]
            found.append(
                Stage(
                    first=first,
                    last=last,
                    devices=devices,
                    time_s=float(table.time_s[first, last]),
                    memory_bytes=int(table.memory[first, last]),
                )
            )
            times.append([t[first, last] for t in (table.time_s, table.through_s, table.end_s)])
            device += devices
        bottleneck, end = max(t[0] for t in times), max(t[2] for t in times)
        step = (self.micro_batches - 1) * bottleneck + sum(t[1] for t in times) + end
        return Solution(
            cuts=tuple(stage.first for stage in found[1:]),
            stages=tuple(found),
            step_s=float(step),
            bottleneck_s=float(bottleneck),
            solver=solver,
        )


class StageTable(NamedTuple):
    """Of one place in the row, each (n + 1, n + 1) for the layers [i, j): t, s, e, bytes, and whether it may stand there."""

    time_s: np.ndarray
    through_s: np.ndarray
    end_s: np.ndarray
    memory: np.ndarray
    fits: np.ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """The layers [first, last) on `devices`; t_k, and the bytes that each of its devices holds."""

    first: int
    last: int
    devices: int
    time_s: float
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Solution:
    """An optimal partition: where it cuts, and what it costs."""

    cuts: tuple[int, ...]
    stages: tuple[Stage, ...]
    step_s: float
    bottleneck_s: float
    solver: str

    @property
    def memory_bytes(self) -> tuple[int, ...]:
        """Return what a device of each stage holds."""
        return tuple(stage.memory_bytes for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Infeasible:
    """There is no partition; `reason` names the constraint."""

    reason: str
