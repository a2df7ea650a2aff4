"""A part of a model in TensorFlow, with or without Keras: compiled passes, and tapes between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.training.frameworks import ModelPart, ModelPlan
from transect.training.frameworks._channels_last import samples_first
from transect.training.frameworks._keras_trainers import TensorFlowTrainer
from transect.training.frameworks._tensorflow_trainer import TensorflowTrainer
from transect.training.parts import PartByTrainer


class TensorflowPart(PartByTrainer):
    """Forward and backward passes are compiled apart; a tape keeps the first one's tensors for the second.

    Functions are traced once for each size of a micro-batch.
    """

    trainer: Any

    def __init__(self, plan: ModelPlan, part: ModelPart) -> None:
        super().__init__(plan, part, self._build)
        import tensorflow as tf

        self._tf = tf
        self._trained = list(self._variables())
        self._functions = [tf.function(function, autograph=False) for function in (self._outputs, self._loss)]
        self._add = tf.function(self._added, autograph=False)
        self._none = self.trainer.flat_gradient

    def _build(self, plan: ModelPlan) -> Any:
        return TensorflowTrainer(plan)

    def _variables(self) -> Any:
        return self.trainer.trained

    def _outputs(self, x: Any) -> Any:
        return self.trainer.outputs(x, True)

    def _loss(self, x: Any, y: Any) -> Any:
        return self.trainer.loss(x, y)

    def _added(self, flat: Any, gradients: list[Any]) -> Any:
        tf = self._tf
        return flat + tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], 0)

    def begin_step(self) -> None:
        super().begin_step()
        self.trainer.flat_gradient = self._none

    def _pass(self, i: int, function: Any, x: Any, y: tuple[Any, ...], weight: float) -> Any:
        x = self.native(x)
        with self._tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._trained if self.part.begins else [x, *self._trained])
            end = function(x, *y)
        self.tapes[i] = tape, x, end, weight
        return end

    def forward(self, i: int, x: Any) -> np.ndarray:
        """Return the outputs; on a CPU the array is the tensor's own memory."""
        return _array(self._pass(i, self._functions[0], x, (), 1.0))

    def loss(self, i: int, x: Any, y: Any, weight: float) -> float:
        return float(self._pass(i, self._functions[1], x, (y,), weight))

    def backward(self, i: int, g: np.ndarray | None) -> np.ndarray | None:
        tf = self._tf
        tape, x, end, weight = self.tapes.pop(i)
        given = tf.constant(weight, end.dtype) if g is None else tf.convert_to_tensor(g)
        sources = [*self._trained, *([] if self.part.begins else [x])]
        gradients = tape.gradient(end, sources, given) if sources else []
        if self._trained:
            of_weights = gradients[: len(self._trained)]
            self.trainer.flat_gradient = self._add(self.trainer.flat_gradient, of_weights)
        return None if self.part.begins else samples_first(_array(gradients[-1]))

    def update(self, learning_rate: float) -> None:
        if self._trained:
            self.trainer.update(learning_rate)


class KerasTensorflowPart(TensorflowPart):
    """The part is a Keras model."""

    trainer: TensorFlowTrainer

    def __init__(self, plan: ModelPlan, part: ModelPart, keras: Any) -> None:
        self._keras = keras
        super().__init__(plan, part)

    def _build(self, plan: ModelPlan) -> Any:
        return TensorFlowTrainer(plan, self._keras)

    def _variables(self) -> Any:
        variable = self._keras.Variable if hasattr(self._keras, "Variable") else ()
        found = self.trainer.model.trainable_variables
        # Keras 3 has TensorFlow's variables in its own.
        return [weight.value if isinstance(weight, variable) else weight for weight in found]

    def _outputs(self, x: Any) -> Any:
        return self.trainer.model(x, training=True)

    def _loss(self, x: Any, y: Any) -> Any:
        return self.trainer.loss(y, self._outputs(x))


def _array(tensor: Any) -> np.ndarray:
    array: np.ndarray = np.asarray(memoryview(tensor)) if "CPU" in tensor.device else tensor.numpy()
    return array
