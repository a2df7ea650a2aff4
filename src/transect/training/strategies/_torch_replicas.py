"""What strategies on torch share in which several ranks compute one replica, over gloo."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.training.frameworks import Framework, ModelPlan, Trainer
from transect.training.layout import Layout
from transect.training.models import Model
from transect.training.strategies import Parts
from transect.training.strategies._torch_groups import TIMEOUT, TorchDistributed
from transect.training.workloads import WORKLOADS, model_of

PRECISIONS = ("fp32", "fp64")


@dataclass(slots=True)
class RankGroup:
    """Some ranks with a process group of their own; `seconds` adds up the time spent in messages.

    gloo's collectives and waits return when the message is there: on a CPU all of it is waited.
    """

    ranks: list[int]
    process_group: Any
    seconds: float = 0.0

    @property
    def alone(self) -> bool:
        return len(self.ranks) == 1

    def sum(self, tensor: Any) -> Any:
        import torch.distributed as dist

        if not self.alone:
            begin = time.perf_counter()
            dist.all_reduce(tensor, group=self.process_group)
            self.seconds += time.perf_counter() - begin
        return tensor

    def exchange(self, sends: list[tuple[int, Any]], receives: list[tuple[int, Any]]) -> None:
        """Send and fill contiguous tensors, each with the place of its peer among `ranks`.

        Between two ranks messages keep their order.
        """
        import torch.distributed as dist

        if not sends and not receives:
            return
        begin = time.perf_counter()
        works = [dist.isend(t, self.ranks[peer], group=self.process_group) for peer, t in sends]
        works += [dist.irecv(t, self.ranks[peer], group=self.process_group) for peer, t in receives]
        for work in works:
            work.wait()
        self.seconds += time.perf_counter() - begin


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Where this rank stands: `replica` are those that compute one with it, of which it is number
    `part`; `peers` hold the same part of other replicas; `world` is everybody.
    """

    layout: Layout
    part: int
    replica: RankGroup
    peers: RankGroup
    world: RankGroup

    @classmethod
    def form(cls, layout: Layout) -> ReplicaGroups:
        """Make the groups; all ranks must call it."""
        import torch.distributed as dist

        rank, parts = dist.get_rank(), layout.model_parts
        mine: list[RankGroup] = []
        replicas = [list(range(r, r + parts)) for r in range(0, layout.ranks, parts)]
        peers = [list(range(part, layout.ranks, parts)) for part in range(parts)]
        for ranks in (*replicas, *peers):
            handle = dist.new_group(ranks, timeout=TIMEOUT)
            if rank in ranks:
                mine.append(RankGroup(ranks, handle))
        world = RankGroup(list(range(layout.ranks)), None)
        replica, peer = mine
        return cls(layout, rank % parts, replica, peer, world)

    def take_seconds(self) -> float:
        """Return what was spent in messages since the last call."""
        groups = (self.replica, self.peers, self.world)
        spent = sum(group.seconds for group in groups)
        for group in groups:
            group.seconds = 0.0
        return spent


def share_weights(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return rank 0's on every rank; names and shapes are the same everywhere."""
    import torch
    import torch.distributed as dist

    shared = {}
    for name, array in weights.items():
        tensor = torch.tensor(array)
        dist.broadcast(tensor, 0)
        shared[name] = tensor.numpy()
    return shared


class ReplicaStrategy(TorchDistributed, ABC):
    """Ranks divide into replicas of `parts` ranks. A subclass says how a replica is computed."""

    sharded = True
    # The option that says how many ranks compute a replica.
    parts = "parts"
    options = {  # noqa: RUF012 a constant
        "parts": Option(default=0, min=0, description="ranks that compute one replica; 0: all ranks")
    }

    def __init__(self) -> None:
        self.groups: Any = None
        self._start: dict[str, np.ndarray] = {}

    def supports(self, cell: TrainCell) -> str | None:
        """Torch on CPUs, in one precision throughout; then what the model says."""
        name, parts = cell.strategy, self.replica_ranks(cell)
        if cell.framework != "torch":
            return f"{name} is a strategy of torch, not of {cell.framework}"
        if cell.device != "cpu":
            return f"{name} sends over gloo between CPUs: the cell runs on {cell.device}"
        if cell.precision not in PRECISIONS:
            return f"{name} trains in {' or '.join(PRECISIONS)}, not in {cell.precision}"
        if cell.memory != "plain":
            return f"{name} keeps activations as they are: memory {cell.memory} is not for it"
        if cell.ranks % parts:
            return f"{cell.ranks} ranks cannot be divided into replicas of {parts}"
        return self.complaint(model_of(WORKLOADS.get(cell.workload)), cell)

    def replica_ranks(self, cell: TrainCell) -> int:
        return int(self.settings(cell)[self.parts]) or cell.ranks

    @abstractmethod
    def complaint(self, model: Model, cell: TrainCell) -> str | None:
        """Return why the model cannot be divided as the cell asks, or None."""

    def layout(self, cell: TrainCell) -> Layout:
        parts = self.replica_ranks(cell)
        return Layout(max(1, cell.ranks // parts), parts)

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        self.groups = ReplicaGroups.form(self.layout(cell))
        self._start = plan.weights
        return self.build(plan, cell)

    @abstractmethod
    def build(self, plan: ModelPlan, cell: TrainCell) -> Trainer:
        """Return this rank's trainer; the groups are formed."""

    def start(self, trainer: Trainer) -> None:
        trainer.load(share_weights(self._start))

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        self.groups.take_seconds()
        begin = time.perf_counter()
        loss = trainer.forward_backward(x, y)
        self.reduce(trainer)
        trainer.update(learning_rate)
        trainer.finish_step()
        whole = time.perf_counter() - begin
        waited = self.groups.take_seconds()
        return Parts(loss, whole - waited, waited, waited)

    def sum_gradients(self, trainer: Trainer, flat: np.ndarray, group: RankGroup) -> None:
        """Add up over a group, take the mean over replicas if that is asked for, and keep it."""
        import torch

        group.sum(torch.from_numpy(flat))
        if self.operation == "mean":
            flat /= self.groups.layout.replicas
        trainer.set_gradient(flat)

    def details(self) -> dict[str, Any]:
        part = self.groups.part
        return {"part": part, "replica": self.groups.replica.ranks[0] // len(self.groups.replica.ranks)}
