"""A model with inputs and outputs of several types: a number of a table, features, a class."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.onnx_models.models import MODELS, Arrays, Built, MadeModel, drawing

_ENTRIES, _WIDTH, _FEATURES, _CLASSES, _ROWS = 50, 16, 6, 4, 128
_ENDS = ("scores", "best")


@MODELS.register("several-inputs-outputs")
class SeveralEnds(MadeModel):
    """int64 and float32 in, float32 scores and the int64 number of the best out: 892 parameters."""

    frameworks = ("torch", "keras-tensorflow", "keras-torch", "tensorflow")

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw a table, a matrix, and inputs."""
        generator = drawing(seed, "several-inputs-outputs")
        shapes = {"table": (_ENTRIES, _WIDTH), "matrix": (_WIDTH + _FEATURES, _CLASSES), "bias": (4,)}
        weights = {name: generator.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
        given: list[Arrays] = [
            {
                "entry": generator.integers(_ENTRIES, size=_ROWS),
                "features": generator.standard_normal((_ROWS, _FEATURES)).astype(np.float32),
            }
            for _ in range(2)
        ]
        makers = {"torch": _torch, "tensorflow": _tensorflow}
        return makers.get(framework, _keras)(weights, *given)


def _torch(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import torch
    from torch import nn

    from transect.onnx_models.models._torch import built_in_torch

    class Several(nn.Module):  # type: ignore[misc]
        """The table beside the features, and a linear layer."""

        def __init__(self) -> None:
            super().__init__()
            for name, array in weights.items():
                self.register_buffer(name, torch.from_numpy(array))

        def forward(self, entry: torch.Tensor, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            joined = torch.cat((nn.functional.embedding(entry, self.table), features), 1)
            scores = joined @ self.matrix + self.bias
            return scores, scores.argmax(1)

    return built_in_torch(Several().eval(), inputs, calibration, _ENDS)


def _keras(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import keras

    from transect.onnx_models.models._keras import built_in_keras

    def make() -> Any:
        entry = keras.Input((), name="entry", dtype="int64")
        features = keras.Input((_FEATURES,), name="features")
        table, dense = keras.layers.Embedding(_ENTRIES, _WIDTH), keras.layers.Dense(_CLASSES)
        scores = dense(keras.layers.Concatenate()([table(entry), features]))
        best = keras.ops.cast(keras.ops.argmax(scores, axis=1), "int64")
        model = keras.Model([entry, features], [scores, best])
        table.set_weights([weights["table"]])
        dense.set_weights([weights["matrix"], weights["bias"]])
        return model

    return built_in_keras(make, inputs, calibration, _ENDS)


def _tensorflow(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import tensorflow as tf

    def model_in(dtype: Any) -> Any:
        def model(entry: Any, features: Any) -> tuple[Any, Any]:
            # Made inside: the converter takes what a function finds outside for inputs.
            table, matrix, bias = (tf.constant(array, dtype) for array in weights.values())
            scores = tf.concat((tf.gather(table, entry), features), 1) @ matrix + bias
            return scores, tf.argmax(scores, 1)

        return model

    def run(model: Any, floats: Any) -> Arrays:
        entry, features = inputs.values()
        found = model(tf.constant(entry), tf.constant(features, floats))
        return {name: output.numpy() for name, output in zip(_ENDS, found, strict=True)}

    single = model_in(tf.float32)
    return Built(
        model=single,
        inputs=inputs,
        calibration=calibration,
        outputs=run(single, tf.float32),
        exact=run(model_in(tf.float64), tf.float64),
    )
