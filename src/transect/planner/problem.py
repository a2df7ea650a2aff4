"""Which layers go to which devices: the problem, and what an answer costs.

Devices stand in a row, and each holds a stage: the layers [i, j). With M micro-batches a step takes

    (M - 1) max_k t_k  +  sum_k s_k  +  max_k e_k

| | |
|---|---|
| s_k | forward and backward of one micro-batch through stage k, and both messages over the boundary behind it: activations, and the gradient that comes back |
| t_k | how often stage k can take one: its computing and the messages on both of its boundaries, which nothing hides |
| e_k | the end of the step: its update, and the sum of its gradients over the replicas of the row |

The first two terms are the fill, the steady state and the drain of a pipeline (Y. Huang et al., "GPipe", 2019; D. Narayanan
et al., "PipeDream", 2019); the last one is an upper bound, as early stages are still at work when late ones sum. A message
of n bytes takes alpha + beta n; a sum over p devices 2 ceil(log2 p) alpha + 2 (p - 1)/p beta n (R. Thakur et al.,
"Optimization of collective communication operations in MPICH", 2005).

A stage holds `copies` arrays as large as its weights, and what its layers keep of every micro-batch that is live: all M
(GPipe), or as many as there are stages from it to the end (1F1B).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from transect.planner.costs import LayerCosts

Schedule = Literal["gpipe", "1f1b"]


class Link(NamedTuple):
    """What a message costs: seconds, and seconds for each byte."""

    alpha_s: float
    beta_s_per_byte: float


_FREE = Link(0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Layers with their costs for one micro-batch, and the row of devices.

    `links`: of each boundary between neighbours (`devices` - 1), free where none is given. `memory_bytes`: what a device has; None: no limit.
    `replicas`: the whole row stands that often, and gradients are summed over `replica_link`.
    """

    layers: tuple[LayerCosts, ...]
    devices: int
    micro_batches: int = 1
    schedule: Schedule = "1f1b"
    memory_bytes: int | None = None
    links: tuple[Link, ...] = ()
    copies: int = 2
    replicas: int = 1
    replica_link: Link = _FREE

    @property
    def room(self) -> float:
        """Bytes of a device; infinite where there is no limit."""
        return float("inf") if self.memory_bytes is None else float(self.memory_bytes)

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.layers)

    def live(self, device: int) -> int:
        """Return the most micro-batches that the stage on `device` has begun and not ended."""
        if self.schedule == "gpipe":
            return self.micro_batches
        return min(self.micro_batches, self.devices - device)

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
        if self.links and 0 <= boundary < self.devices - 1:
            sizes = np.array([layer.out_bytes for layer in self.layers[:-1]], float)
            found[1:-1] = 2 * (self.links[boundary].alpha_s + self.links[boundary].beta_s_per_byte * sizes)
        return found

    def _sum_s(self, sizes: np.ndarray) -> np.ndarray:
        p, link = self.replicas, self.replica_link
        times = 2 * (p - 1).bit_length() * link.alpha_s + 2 * (p - 1) / p * link.beta_s_per_byte * sizes
        return np.where(sizes > 0, times, 0.0)

    @cached_property
    def tables(self) -> list[StageTable]:
        """Costs of all stages on each device."""
        return [self._table(device) for device in range(self.devices)]

    def _table(self, device: int) -> StageTable:
        compute = self._between("compute_s")
        before, behind = self._messages(device - 1), self._messages(device)
        weights = self._between("weight_bytes")
        memory = self.copies * weights + self.live(device) * self._between("kept_bytes")
        n = self.count
        places = np.arange(n + 1)
        fits = (places[None, :] > places[:, None]) & (memory <= self.room)
        # The first device takes the first layer and no other one does, and so at the end.
        fits[(places == 0) != (device == 0), :] = False
        fits[:, (places == n) != (device == self.devices - 1)] = False
        return StageTable(
            time_s=compute + before[:, None] + behind[None, :],
            through_s=compute + behind[None, :],
            end_s=self._between("update_s") + self._sum_s(weights),
            memory=memory,
            fits=fits,
        )

    def solution(self, cuts: Sequence[int], solver: str) -> Solution:
        """Return what stages that begin at layer 0 and at each cut cost."""
        ends = [*pairwise((0, *cuts, self.count))]
        found = [
            Stage(
                first=first,
                last=last,
                time_s=float(table.time_s[first, last]),
                memory_bytes=int(table.memory[first, last]),
            )
            for table, (first, last) in zip(self.tables, ends, strict=True)
        ]
        through, end = zip(
            *((t.through_s[at], t.end_s[at]) for t, at in zip(self.tables, ends, strict=True)), strict=True
        )
        bottleneck = max(stage.time_s for stage in found)
        return Solution(
            cuts=tuple(cuts),
            stages=tuple(found),
            step_s=float((self.micro_batches - 1) * bottleneck + sum(through) + max(end)),
            bottleneck_s=bottleneck,
            solver=solver,
        )


class StageTable(NamedTuple):
    """Of one device, each (n + 1, n + 1) for the layers [i, j): t, s, e, bytes, and whether it may stand there."""

    time_s: np.ndarray
    through_s: np.ndarray
    end_s: np.ndarray
    memory: np.ndarray
    fits: np.ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """The layers [first, last); t_k, and the bytes that its device holds."""

    first: int
    last: int
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
        """Return the memory that a device of each stage needs."""
        return tuple(stage.memory_bytes for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Infeasible:
    """There is no partition; `reason` names the constraint."""

    reason: str
