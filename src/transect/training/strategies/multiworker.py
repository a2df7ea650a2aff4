"""TensorFlow's MultiWorkerMirroredStrategy: rings over gRPC between CPUs, NCCL between GPUs."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import Any

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import Trainer
from transect.training.strategies import STRATEGIES, Parts, Place, Strategy


class _Multiworker(Strategy):
    """Forward, backward, all-reduce and update are one compiled function, as users write it.

    Variables are made in the strategy's scope, which gives all ranks the values of rank 0.
    Running statistics of a batch norm stay those of the rank.
    """

    rendezvous = "tf-config"
    # A member of tf.distribute.experimental.CommunicationImplementation, and where it works.
    implementation = ""
    device = ""

    def __init__(self) -> None:
        self._scope = ExitStack()

    def supports(self, cell: TrainCell) -> str | None:
        """TensorFlow only; the ring on CPUs, NCCL on GPUs."""
        if (cell.framework or "").startswith("keras"):
            return "Keras 3 does not train under MultiWorkerMirroredStrategy"
        if cell.framework != "tensorflow":
            return f"multiworker is a strategy of tensorflow, not of {cell.framework}"
        if cell.device != self.device:
            name = f"multiworker-{self.implementation.lower()}"
            return f"{name} works on {self.device}: the cell runs on {cell.device}"
        return None

    def join(self) -> Place:
        from transect.training.frameworks._tensorflow_trainer import configure

        # The rendezvous sets what the trainer is given later.
        tf = self._tf = configure(int(os.environ.get("TF_NUM_INTRAOP_THREADS", "1")), self.device)
        known = tf.distribute.experimental.CommunicationImplementation
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=tf.distribute.experimental.CommunicationOptions(
                implementation=known[self.implementation]
            )
        )
        self._scope.enter_context(self._strategy.scope())
        rank, size = self._strategy.cluster_resolver.task_id, self._strategy.num_replicas_in_sync
        return Place(rank, size, int(os.environ.get("LOCAL_RANK", "0")))

    def start(self, trainer: Trainer) -> None:
        """Compile the step; the weights are rank 0's already."""
        tf = self._tf
        owner: Any = trainer

        def step(x: Any, y: Any, rate: Any) -> tuple[Any, Any]:
            loss, gradients = owner.loss_and_gradients(x, y)
            # The strategy packs all gradients in one message, so it waits for the last in any case.
            with tf.control_dependencies(gradients):
                begin = tf.timestamp()
            with tf.control_dependencies([begin]):
                ready = [tf.identity(gradient) for gradient in gradients]
            reduced = self._all_reduce(ready)
            with tf.control_dependencies(reduced):
                seconds = tf.timestamp() - begin
            owner.apply(reduced, rate)
            return loss, seconds

        self._step, self._rate = owner.compiled(step), owner.rate
        self._meet = owner.compiled(lambda: self._all_reduce(tf.zeros(())))
        self.barrier()

    def _all_reduce(self, values: Any) -> Any:
        operation = self._tf.distribute.ReduceOp[self.operation.upper()]
        return self._tf.distribute.get_replica_context().all_reduce(operation, values)

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """Communication is timed inside the compiled step, from the last gradient to the result."""
        begin = time.perf_counter()
        result = self._step(x, y, self._rate(learning_rate))
        loss, seconds = (float(value) for value in result)
        trainer.finish_step()
        whole = time.perf_counter() - begin
        if self.device == "cuda":
            # The clock inside the function tells when work was given to the GPU, not when it ended.
            return Parts(loss, float("nan"), float("nan"), float("nan"))
        # It is the wall clock, which may be set meanwhile.
        communication = min(max(seconds, 0.0), whole)
        return Parts(loss, whole - communication, communication, communication)

    def barrier(self) -> None:
        float(self._meet())

    def leave(self) -> None:
        """Leave together: a rank that has gone is an error to those that still work."""
        self.barrier()
        self._scope.close()

    def libraries(self) -> dict[str, str]:
        return {"tf.distribute": f"MultiWorkerMirroredStrategy, {self.implementation}"}


@STRATEGIES.register("multiworker-ring", "multiworker", "MultiWorkerMirroredStrategy")
class MultiworkerRing(_Multiworker):
    """Rings over gRPC."""

    implementation = "RING"
    device = "cpu"


@STRATEGIES.register("multiworker-nccl", "multiworker", "MultiWorkerMirroredStrategy")
class MultiworkerNccl(_Multiworker):
    """NCCL, one GPU per rank."""

    implementation = "NCCL"
    device = "cuda"
