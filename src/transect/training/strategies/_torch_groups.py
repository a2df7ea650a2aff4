"""What the strategies on torch.distributed share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from transect.training.strategies import Operation, Place, Strategy

# After which a rank gives a silent one up.
TIMEOUT = timedelta(seconds=120)


class TorchDistributed(Strategy):
    """Ranks meet at MASTER_ADDR:MASTER_PORT in torch's default process group."""

    rendezvous = "tcp"
    backend = "gloo"

    def join(self) -> Place:
        import torch.distributed as dist

        dist.init_process_group(self.backend, timeout=TIMEOUT)
        return Place(dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"]))

    def barrier(self) -> None:
        import torch.distributed as dist

        dist.barrier()

    def leave(self) -> None:
        """Destroy the process group where NCCL works: a GPU may still read its peer's memory.

        Over gloo there is nothing to do: messages are in the kernel's hands after a barrier, and
        ending gloo's threads is where ranks were seen to abort.
        """
        import torch
        import torch.distributed as dist

        if torch.cuda.is_available() and "nccl" in dist.get_backend_config():
            dist.destroy_process_group()

    def libraries(self) -> dict[str, str]:
        return {"torch.distributed": self.backend}


class TimedCollective:
    """A collective of FSDP with its buffers, as `set_custom_all_gather` takes it.

    On a CPU FSDP calls it to its end, inside forward and backward: all of its time is waited.
    FSDP's copies into and out of the buffers count as computing.
    """

    def __init__(self, collective: Callable[..., Any]) -> None:
        self._collective = collective
        self.seconds = 0.0

    def allocate(self, size: Any, *, dtype: Any, device: Any) -> Any:
        import torch

        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor: Any, input_tensor: Any, group: Any, **how: Any) -> Any:
        begin = time.perf_counter()
        work = self._collective(output_tensor, input_tensor, group=group, **how)
        if work is not None:
            work.wait()
        self.seconds += time.perf_counter() - begin


def prepare_shards(group: Any, operation: Operation, device: str) -> list[TimedCollective]:
    """Set up a module of `fully_shard`; return its collectives, where they can be timed: on a CPU."""
    import torch.distributed as dist

    timed = []
    if operation == "sum":
        group.set_gradient_divide_factor(1.0)
        # Without it, torch asks for a scaled sum that gloo does not have.
        group.set_force_sum_reduction_for_comms(True)
    if device == "cpu":
        gather, scatter = TimedCollective(dist.all_gather_single), TimedCollective(_reduce_scatter)
        group.set_custom_all_gather(gather)
        group.set_custom_reduce_scatter(scatter)
        timed = [gather, scatter]
    # Makes the buffers of whole parameters: made by a first prediction, under
    # inference mode, they could not be trained with.
    group.unshard()
    group.reshard()
    return timed


def _reduce_scatter(output: Any, source: Any, **how: Any) -> Any:
    import torch.distributed as dist

    return dist.reduce_scatter_single(output, source, **how)
