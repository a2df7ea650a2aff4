"""Pipelines as clocks: every stage of every replica, message by message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.simulation.networks import Network
from transect.simulation.schedules import levels

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

    def __post_init__(self) -> None:
        parts = len(self.forward_s)
        if parts % self.stages or len(self.backward_s) != parts:
            raise ValueError(f"{parts} parts cannot be laid on {self.stages} stages")
        if not len(self.passed_bytes) == len(self.networks) == parts - 1:
            raise ValueError(f"between {parts} parts lie {parts - 1} links")

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
