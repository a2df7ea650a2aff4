"""Pipelines as clocks: every stage of every replica, message by message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.simulation.networks import Machine, Network, Ranks
from transect.simulation.work import Messages, Step, Work
from transect.training.pipeline_schedules import SCHEDULES as TRAINED


class Pass(NamedTuple):
    """One forward or backward pass of a micro-batch through a stage's `chunk`-th run of layers."""

    backward: bool
    micro: int
    chunk: int


def order(schedule: str, stage: int, stages: int, micro_batches: int, chunks: int = 1) -> list[Pass]:
    """Return what a stage does, one after another."""
    if schedule == "interleaved":
        return _interleaved(stage, stages, micro_batches, chunks)
    passes = TRAINED[schedule](stage, stages, micro_batches)
    return [Pass(not trained.forward, trained.micro_batch, 0) for trained in passes]


def _interleaved(stage: int, stages: int, micro_batches: int, chunks: int) -> list[Pass]:
    """Groups of as many micro-batches as there are stages go through one chunk after the other."""
    total = micro_batches * chunks
    round_ = stages * chunks
    forward, backward = [], []
    for number in range(total):
        chunk = number % round_ // stages
        micro = number // round_ * stages + number % stages
        forward.append(Pass(False, micro, chunk))
        backward.append(Pass(True, micro, chunks - 1 - chunk))
    ahead = min(total, 2 * (stages - 1 - stage) + (chunks - 1) * stages)
    alternating = [entry for pair in zip(forward[ahead:], backward, strict=False) for entry in pair]
    return [*forward[:ahead], *alternating, *backward[len(forward) - ahead :]]


class Level(NamedTuple):
    """Passes that wait for none of each other, at most one for each stage; arrays of one length."""

    stage: Ranks
    part: Ranks
    micro: Ranks
    backward: Ranks


@lru_cache(maxsize=64)
def levels(schedule: str, stages: int, micro_batches: int, chunks: int) -> tuple[Level, ...]:
    """Return all passes such that each comes after those that it waits for.

    Part chunk x stages + stage of the model lies on each stage.
    """
    orders = [order(schedule, stage, stages, micro_batches, chunks) for stage in range(stages)]
    last = stages * chunks - 1
    done: set[tuple[bool, int, int]] = set()
    at = [0] * stages
    found = []
    while any(place < len(passes) for place, passes in zip(at, orders, strict=True)):
        ready = []
        for stage, place in enumerate(at):
            if place == len(orders[stage]):
                continue
            backward, micro, chunk = orders[stage][place]
            part = chunk * stages + stage
            if backward:
                needed = (True, micro, part + 1) if part < last else (False, micro, part)
            else:
                needed = (False, micro, part - 1)
            if (not backward and part == 0) or needed in done:
                ready.append((stage, part, micro, int(backward)))
        for stage, part, micro, back in ready:
            done.add((bool(back), micro, part))
            at[stage] += 1
        found.append(Level(*(np.array(column, dtype=np.intp) for column in zip(*ready, strict=True))))
    return tuple(found)


Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Run:
    """When each stage of each replica has done its last pass, and how long it computed.

    Both (stages, replicas). `gradients`: when a part's gradients are whole, (parts, replicas).
    """

    ends: Seconds
    busy: Seconds
    gradients: Seconds

    @property
    def bubble(self) -> float:
        """The share of all stages' time, until the last one is done, in which they did not compute."""
        return 1 - float(self.busy.sum() / (self.ends.max(axis=0) * len(self.ends)).sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """A model in parts, part k on stage k modulo `stages`.

    `forward_s`, `backward_s` (parts,): of one micro-batch. `passed_bytes` (parts - 1,): what goes on
    to the next part, and as much comes back as its gradient. `networks` (parts - 1): what lies
    between. Messages are sent without waiting, and received in the order in which they are needed;
    those of one link and direction follow one another.
    """

    stages: int
    micro_batches: int
    schedule: str
    forward_s: Seconds
    backward_s: Seconds
    passed_bytes: Seconds
    networks: tuple[Network, ...]

    def run(self, slower: Seconds | None = None, begin: float = 0.0) -> Run:
        """Go through one step. `slower` (stages, replicas) stretches each rank's computing."""
        pace = np.ones((self.stages, 1)) if slower is None else slower
        parts, replicas = len(self.forward_s), pace.shape[1]
        seconds = np.stack([self.forward_s, self.backward_s])
        fixed = np.array([network.alpha_s for network in self.networks])
        moving = np.array([n.beta_s_per_byte for n in self.networks]) * self.passed_bytes
        clocks = np.full((self.stages, replicas), begin)
        busy = np.zeros_like(clocks)
        # When a micro-batch's input is with a part, forwards and backwards; when a link is free.
        there = np.full((2, parts, self.micro_batches, replicas), begin)
        free = np.full((2, parts, replicas), -np.inf)
        whole = np.zeros((parts, replicas))
        for stage, part, micro, backward in levels(
            self.schedule, self.stages, self.micro_batches, parts // self.stages
        ):
            took = seconds[backward, part][:, None] * pace[stage]
            end = np.maximum(clocks[stage], there[backward, part, micro]) + took
            clocks[stage] = end
            busy[stage] += took
            whole[part[backward == 1]] = end[backward == 1]
            target = np.where(backward == 1, part - 1, part + 1)
            turns = (backward == 0) & (part == parts - 1)
            there[1, part[turns], micro[turns]] = end[turns]
            sent = (target >= 0) & (target < parts)
            link = np.minimum(part, target)[sent]
            way, goal = backward[sent], target[sent]
            ready = np.maximum(end[sent], free[way, link])
            if self.stages > 1:
                free[way, link] = ready + moving[link][:, None]
                ready = free[way, link] + fixed[link][:, None]
            there[way, goal, micro[sent]] = ready
        return Run(clocks - begin, busy, whole - begin)


def pipelined(
    work: Work,
    machine: Machine,
    messages: Messages,
    *,
    cuts: Sequence[int],
    micro_batches: int,
    schedule: str,
    chunks: int = 1,
    behind: bool = False,
) -> Step:
    """Run replicas of a pipeline, then all-reduce each stage's gradient over the replicas.

    `cuts` begin all parts but the first. Rank = replica x stages + stage. `behind`: a part is
    reduced as soon as its gradients are whole, not when its stage is done.
    """
    work = work.joined(cuts)
    parts = len(work.forward_s)
    stages = parts // chunks
    replicas = machine.ranks // stages
    place = np.arange(parts) % stages
    networks = [
        machine.inside if _together(machine, stages, a, b) else machine.between for a, b in pairwise(place.tolist())
    ]
    pipeline = Pipeline(
        stages=stages,
        micro_batches=micro_batches,
        schedule=schedule,
        forward_s=work.forward_s,
        backward_s=work.backward_s,
        passed_bytes=work.out_bytes[:-1],
        networks=tuple(networks),
    )
    if messages.slower is None:
        slower = np.ones((stages, 1))  # all replicas are alike: one stands for them
    else:
        slower = messages.slower.reshape(replicas, stages).T
    run = pipeline.run(slower)
    updates = np.bincount(place, work.update_s, stages)
    ends, under_way = run.ends.copy(), 0.0
    among = machine.strided(stages)
    for part in range(parts - 1, -1, -1) if replicas > 1 else ():
        stage = part % stages
        ready = run.gradients[part] if behind else ends[stage]
        ready = np.broadcast_to(ready, (replicas,))
        there = messages.allreduce(ready, float(work.gradient_bytes[part]), among)
        under_way = max(under_way, float(there.max() - ready.max()))
        ends[stage] = np.maximum(ends[stage], there if len(slower[0]) > 1 else there.max())
    ends = ends + slower * (updates[:, None] + work.step_s)
    late = np.unravel_index(int(ends.argmax()), ends.shape)
    computed = run.busy + slower * (updates[:, None] + work.step_s)
    return Step(float(ends[late]), float(computed[late]), under_way, run.bubble)


def _together(machine: Machine, stages: int, a: int, b: int) -> bool:
    """Whether two stages lie on one node in every replica: the slowest replica is the step."""
    first: Ranks = np.arange(0, machine.ranks, stages)
    return np.array_equal((first + a) // machine.ranks_per_node, (first + b) // machine.ranks_per_node)
