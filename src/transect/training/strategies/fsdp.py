"""PyTorch's fully sharded data parallelism (FSDP2, `fully_shard`) over gloo or nccl."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import nan
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Parts, Place
from transect.training.strategies._torch_groups import TimedCollective, TorchDistributed, prepare_shards
from transect.training.traffic import Traffic


@STRATEGIES.register("fsdp", "fsdp2", "FullyShardedDataParallel")
class Fsdp(TorchDistributed):
    """Each rank keeps a part of every parameter, gradient and momentum.

    Whole parameters are gathered before they are needed, gradients reduced and scattered. The
    root keeps its whole parameters from forward to backward, other groups gather them again:
    torch's own defaults. Batch norm: each rank normalises by its own part of the batch and keeps
    its own running statistics.
    Source: https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
    """

    sharded = splits_weights = splits_update = True
    # Each micro-batch's gradient is scattered: to keep whole ones for the last would take the memory that shards save.
    accumulates_in = ("torch",)
    # A layer or residual block with so many parameters is gathered by itself, the rest together:
    # a message of less than about a megabyte costs its latency and little else.
    smallest_group = 250_000

    def __init__(self) -> None:
        self._groups: list[Any] = []
        self._device = "cpu"
        self._timed: list[TimedCollective] = []

    def supports(self, cell: TrainCell) -> str | None:
        if cell.framework != "torch":
            return f"fsdp is a strategy of torch, not of {cell.framework}"
        if cell.device not in ("cpu", "cuda"):
            return f"fsdp runs on cpu or cuda, not on {cell.device}"
        return None

    def traffic(self, cell: TrainCell) -> Traffic | None:
        """Gathered before both passes and scattered after; messages of GPUs are not predicted."""
        if cell.device != "cpu":
            return None
        return Traffic(pattern="fully-sharded", carrier="gloo", progress=False, copies=0)

    def join(self) -> Place:
        """Meet at MASTER_ADDR:MASTER_PORT; nccl starts with its first message, if ever."""
        import torch
        import torch.distributed as dist

        both = torch.cuda.is_available() and dist.is_nccl_available()
        self.backend = "cpu:gloo,cuda:nccl" if both else "gloo"
        return super().join()

    def start(self, trainer: Trainer) -> None:
        """Take rank 0's weights, shard the module in place, and give the optimiser the shards."""
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        owner: Any = trainer
        root = owner.model
        self._device = owner.device.type
        for tensor in root.state_dict().values():
            dist.broadcast(tensor, 0)
        mesh = init_device_mesh(self._device, (dist.get_world_size(),))
        large = [layer for layer in _layers(root) if sum(p.numel() for p in layer.parameters()) >= self.smallest_group]
        self._groups = [fully_shard(module, mesh=mesh) for module in (*large, root)]
        for group in self._groups:
            self._timed += prepare_shards(group, self.operation, self._device)
        # An optimiser holds parameters, and the shards are new ones.
        owner.rebind(root.parameters())

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """On a CPU nothing overlaps; on GPUs torch does not tell what was waited for: NaN."""
        for collective in self._timed:
            collective.seconds = 0.0
        begin = time.perf_counter()
        loss = trainer.forward_backward(x, y)
        trainer.update(learning_rate)
        trainer.finish_step()
        whole = time.perf_counter() - begin
        if self._device != "cpu":
            return Parts(loss, nan, nan, nan)
        waited = sum(collective.seconds for collective in self._timed)
        return Parts(loss, whole - waited, waited, waited)

    def predict(self, trainer: Trainer, x: np.ndarray) -> np.ndarray:
        """Return the outputs (n, classes); all ranks must call it."""
        outputs = trainer.predict(x)
        # The root would stay whole, and the next step would save a gather that others pay for.
        self._groups[-1].reshard()
        return outputs

    def libraries(self) -> dict[str, str]:
        return {"torch.distributed": "nccl" if self._device == "cuda" else "gloo"}


def _layers(root: Any) -> Iterator[Any]:
    """Yield the modules below the root that compute; a list of modules does not."""
    from torch.nn import ModuleList

    for child in root.children():
        yield from child if isinstance(child, ModuleList) else (child,)
