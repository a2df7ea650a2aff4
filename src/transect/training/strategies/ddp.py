"""PyTorch DistributedDataParallel over gloo, nccl or mpi."""

from __future__ import annotations

import time
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Parts
from transect.training.strategies._progress import union
from transect.training.strategies._torch_groups import TorchDistributed
from transect.training.traffic import Traffic


class _Ddp(TorchDistributed):
    """DDP reduces buckets inside the backward pass; a communication hook takes their times.

    Batch norm: each rank normalises by its own part of the batch, so buffers are not broadcast.
    """

    accumulates_in = ("torch",)

    def __init__(self) -> None:
        self._intervals: list[list[float]] = []

    def supports(self, cell: TrainCell) -> str | None:
        """Modules of torch only; nccl needs one GPU per rank, mpi a torch built with MPI."""
        if cell.framework not in ("torch", "keras-torch"):
            return f"ddp is a strategy of torch, not of {cell.framework}"
        if self.backend == "nccl" and cell.device != "cuda":
            return "nccl works between GPUs: the cell runs on the cpu"
        if self.backend == "mpi":
            return "the mpi back end needs a torch built from source with MPI (USE_MPI, beside an mpicc), and no wheel of PyPI is"
        return None

    def traffic(self, cell: TrainCell) -> Traffic | None:
        """Torch's buckets behind backward; messages of GPUs are not predicted."""
        if self.backend != "gloo":
            return None
        return Traffic(pattern="buckets", carrier="gloo", copies=0)

    def start(self, trainer: Trainer) -> None:
        """Wrap the module, which broadcasts rank 0's weights, and hook the reduction."""
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        owner: Any = trainer
        wrapped = DistributedDataParallel(owner.model, broadcast_buffers=False)
        owner.wrap(wrapped)
        divisor = dist.get_world_size() if self.operation == "mean" else 1

        def timed_reduction(_: object, bucket: Any) -> Any:
            interval = [time.perf_counter(), 0.0]
            self._intervals.append(interval)
            buffer = bucket.buffer()
            if divisor > 1:
                buffer.div_(divisor)

            def finish(future: Any) -> Any:
                interval[1] = time.perf_counter()
                return future.value()[0]

            return dist.all_reduce(buffer, async_op=True).get_future().then(finish)

        # Torch checks the annotations, which must be its own types and not their names.
        timed_reduction.__annotations__ = {"bucket": dist.GradBucket, "return": torch.futures.Future[torch.Tensor]}
        wrapped.register_comm_hook(None, timed_reduction)

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """Backward and reduction overlap; what is waited for begins with the last bucket."""
        begin = time.perf_counter()
        loss = trainer.forward_backward(x, y)
        trainer.update(learning_rate)
        trainer.finish_step()
        whole = time.perf_counter() - begin
        # All gradients are there when the last bucket is handed over: from then on this rank waits.
        computed = max(interval[0] for interval in self._intervals)
        waited = max(0.0, max(interval[1] for interval in self._intervals) - computed)
        under_way = union([(begin, end) for begin, end in self._intervals])
        self._intervals.clear()
        return Parts(loss, whole - waited, waited, under_way)


@STRATEGIES.register("ddp-gloo", "ddp", "DistributedDataParallel")
class DdpGloo(_Ddp):
    """DDP over gloo: TCP between CPUs."""

    backend = "gloo"


@STRATEGIES.register("ddp-nccl", "ddp", "DistributedDataParallel")
class DdpNccl(_Ddp):
    """DDP over NCCL: between GPUs."""

    backend = "nccl"


@STRATEGIES.register("ddp-mpi")
class DdpMpi(_Ddp):
    """DDP over MPI: only in a torch that was built with it."""

    backend = "mpi"
