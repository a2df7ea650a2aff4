"""What a rank does in a step, and what the step takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from transect.simulation.collectives import Allreduce, bcast_binomial, reduce_binomial, ring
from transect.simulation.networks import Clocks, Machine

Layers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What one rank does to its samples in one step, layer by layer: arrays of shape (layers,).

    `gradient_bytes`: of what a layer trains. `out_bytes`: what it passes on. Of a pipeline, all but
    the update are those of one micro-batch. `step_s` is what belongs to no layer.
    """

    forward_s: Layers
    backward_s: Layers
    update_s: Layers
    gradient_bytes: Layers
    out_bytes: Layers
    step_s: float = 0.0

    @property
    def bytes(self) -> float:
        """Bytes of the whole gradient."""
        return float(self.gradient_bytes.sum())

    @property
    def seconds(self) -> float:
        """Seconds of computing in one step."""
        parts = (self.forward_s, self.backward_s, self.update_s)
        return float(sum(part.sum() for part in parts)) + self.step_s

    def joined(self, cuts: Sequence[int]) -> Work:
        """Return the work of parts: those that begin at layer 0 and at each cut, which ascend."""
        first = [0, *cuts]
        sums = partial(np.add.reduceat, indices=np.array(first, dtype=np.intp))
        lasts = np.array([*first[1:], len(self.forward_s)], dtype=np.intp) - 1
        return Work(
            forward_s=sums(self.forward_s),
            backward_s=sums(self.backward_s),
            update_s=sums(self.update_s),
            gradient_bytes=sums(self.gradient_bytes),
            out_bytes=self.out_bytes[lasts],
            step_s=self.step_s,
        )

    def times(self, factor: float) -> Work:
        """Return the same where computing takes `factor` as long."""
        return replace(
            self,
            forward_s=self.forward_s * factor,
            backward_s=self.backward_s * factor,
            update_s=self.update_s * factor,
            step_s=self.step_s * factor,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What a step takes. The slowest rank is the step.

    `waited_s`: what its computing does not account for. `under_way_s`: how long messages were under
    way on a rank, hidden or not.
    """

    seconds: float
    compute_s: float
    under_way_s: float
    bubble: float = 0.0

    @property
    def waited_s(self) -> float:
        """Seconds in which the slowest rank did not compute."""
        return max(0.0, self.seconds - self.compute_s)

    @property
    def overlap(self) -> float:
        """Share of the messages that hid behind computing; 0 where there are none."""
        return max(0.0, 1 - self.waited_s / self.under_way_s) if self.under_way_s > 0 else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Messages:
    """How ranks talk.

    `allreduce`, `broadcast` and `reduce` are their algorithms. `progress`: whether messages move on while ranks compute; if not,
    all of them move when they are waited for. `bucket_bytes`: gradients that are reduced together,
    after the first bucket's. `slower` (ranks,) stretches each rank's computing.
    """

    allreduce: Allreduce = ring
    broadcast: Allreduce = bcast_binomial
    reduce: Allreduce = reduce_binomial
    progress: bool = True
    bucket_bytes: float = 25 * 2**20
    first_bucket_bytes: float = 2**20
    slower: Clocks | None = None

    def pace(self, machine: Machine) -> Clocks:
        """Return what each rank's computing is multiplied by."""
        return np.ones(machine.ranks) if self.slower is None else self.slower


def step_of(end: Clocks, work: Work, pace: Clocks, under_way: float) -> Step:
    """Return the step of ranks that are done at `end`: that of the slowest."""
    late = int(end.argmax())
    return Step(float(end[late]), work.seconds * float(pace[late]), under_way)


Pattern = Callable[[Work, Machine, Messages], Step]
