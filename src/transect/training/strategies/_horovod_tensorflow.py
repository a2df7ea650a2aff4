"""Horovod for TensorFlow and for Keras 2: reductions inside the compiled step, timed there."""

from __future__ import annotations

import time
from typing import Any

from transect.training.strategies import Operation, Parts
from transect.training.strategies.horovod import Adapter


class _Adapter(Adapter):
    """One `hvd.allreduce` per gradient, which is what DistributedGradientTape and Keras'
    DistributedOptimizer put between backward and update: it is sent as soon as it is there.
    """

    def __init__(self, hvd: Any, trainer: Any, operation: Operation) -> None:
        import tensorflow as tf

        self._tf, self._hvd, self._trainer = tf, hvd, trainer
        self._operation = hvd.Average if operation == "mean" else hvd.Sum

    def reduce(self, gradients: list[Any]) -> tuple[list[Any], Any]:
        """Return the reduced gradients and for how many seconds they alone were waited for.

        That is from the last gradient to the last reduction, by the wall clock.
        """
        tf = self._tf
        if self._hvd.size() == 1:
            return gradients, tf.constant(0.0, tf.float64)
        with tf.control_dependencies(gradients):
            begin = tf.timestamp()
        reduced = [
            self._hvd.allreduce(gradient, op=self._operation, name=f"gradient.{index}")
            for index, gradient in enumerate(gradients)
        ]
        with tf.control_dependencies([begin, *reduced]):
            return reduced, tf.timestamp() - begin

    def parts(self, loss: float, seconds: float, whole: float) -> Parts:
        """Divide the step; the wall clock may have been set meanwhile."""
        communication = min(max(seconds, 0.0), whole)
        return Parts(loss, whole - communication, communication, float("nan"))

    def barrier(self) -> None:
        float(self._hvd.allreduce(self._tf.constant(0.0), op=self._hvd.Sum, name="barrier"))


class TensorflowAdapter(_Adapter):
    """Forward, backward, reduction and update in one compiled function."""

    def __init__(self, hvd: Any, trainer: Any, operation: Operation) -> None:
        super().__init__(hvd, trainer, operation)

        def step(x: Any, y: Any, rate: Any) -> tuple[Any, Any]:
            loss, gradients = trainer.loss_and_gradients(x, y)
            reduced, seconds = self.reduce(gradients)
            trainer.apply(reduced, rate)
            return loss, seconds

        self._step = trainer.compiled(step)

    def step(self, x: object, y: object, learning_rate: float) -> Parts:
        begin = time.perf_counter()
        result = self._step(x, y, self._trainer.rate(learning_rate))
        loss, seconds = (float(value) for value in result)
        self._trainer.finish_step()
        return self.parts(loss, seconds, time.perf_counter() - begin)


class KerasAdapter(_Adapter):
    """The trainer's own compiled step with the reduction between backward and update."""

    def __init__(self, hvd: Any, trainer: Any, operation: Operation) -> None:
        super().__init__(hvd, trainer, operation)
        self._waited = self._tf.Variable(0.0, dtype=self._tf.float64, trainable=False)
        trainer.combine = self._combine

    def _combine(self, gradients: list[Any]) -> list[Any]:
        reduced, seconds = self.reduce(gradients)
        self._waited.assign(seconds)
        return reduced

    def step(self, x: object, y: object, learning_rate: float) -> Parts:
        begin = time.perf_counter()
        loss = self._trainer.step(x, y, learning_rate)
        self._trainer.finish_step()
        whole = time.perf_counter() - begin
        return self.parts(loss, float(self._waited), whole)
