"""Horovod for torch: its DistributedOptimizer around the trainer's own optimiser."""

from __future__ import annotations

import time
from typing import Any

from transect.domain.errors import Unsupported
from transect.training.strategies import Operation, Parts
from transect.training.strategies.horovod import Adapter


class TorchAdapter(Adapter):
    """Each gradient is sent as soon as the backward pass has made it; what is left is waited for."""

    def __init__(self, hvd: Any, trainer: Any, operation: Operation) -> None:
        """Wrap the optimiser.

        Raises ImportError on a GPU when Horovod was built without NCCL, and Unsupported for an optimiser that it cannot make.
        """
        if trainer.device.type == "cuda" and not hvd.nccl_built():
            raise ImportError(
                "this Horovod was built without NCCL, so it cannot reduce on GPUs: build its "
                "environment where nvcc of torch's CUDA version is found"
            )
        kind = type(trainer.optimiser)
        if not kind.__module__.startswith(("torch.optim", "transect.")):
            raise Unsupported(
                f"Horovod makes the optimiser anew from its groups alone, and {kind.__name__} may keep more: expected one of torch.optim"
            )
        held = {id(parameter) for group in trainer.optimiser.param_groups for parameter in group["params"]}
        if not held.issuperset(map(id, trainer.parameters)):
            # Of which a norm of all gradients would see those of this rank.
            raise Unsupported("Horovod sends the gradients of what its optimiser holds, and this one leaves some out")
        self._hvd, self._trainer = hvd, trainer
        if trainer.limit is not None:
            # Two at once go through a buffer of 128 MiB, which is Horovod's, and there from now on: first
            # asked for in a step it would be of the step's budget.
            hvd.grouped_allreduce([trainer.torch.zeros(1) for _ in range(2)])
        self._optimiser = hvd.DistributedOptimizer(
            trainer.optimiser,
            named_parameters=trainer.model.named_parameters(),
            backward_passes_per_step=trainer.micro_batches,
            op=hvd.Average if operation == "mean" else hvd.Sum,
        )
        trainer.wrap_optimiser(self._optimiser)

    def step(self, x: object, y: object, learning_rate: float) -> Parts:
        clock, trainer = time.perf_counter, self._trainer
        begin = clock()
        loss = trainer.forward_backward(x, y)
        computed = clock()
        self._optimiser.synchronize()
        trainer.finish_step()
        communication = clock() - computed
        with self._optimiser.skip_synchronize():
            trainer.update(learning_rate)
        trainer.finish_step()
        return Parts(loss, clock() - begin - communication, communication, float("nan"))

    def barrier(self) -> None:
        self._hvd.barrier()
