"""A model whose control flow depends on its input: a loop with as many rounds as an input says, and a branch."""

from __future__ import annotations

import numpy as np

from transect.onnx_models.exporters import OUTPUT
from transect.onnx_models.models import MODELS, Arrays, Built, MadeModel, drawing

_ROWS, _WIDTH, _ROUNDS = 16, 8, 5
_NAMES = ("x", "rounds")


@MODELS.register("control-flow")
class ControlFlow(MadeModel):
    """tanh(x W) a given number of times, then one of two linear layers, by the sign of the sum.

    `torch.jit.script` or `torch.while_loop` and `torch.cond`; `tf.while_loop` and `tf.cond`.
    """

    frameworks = ("torch", "tensorflow")

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw three matrices, and inputs that take both branches."""
        generator = drawing(seed, "control-flow")
        weights = {
            name: generator.uniform(-0.6, 0.6, (_WIDTH, _WIDTH)).astype(np.float32) for name in ("turn", "up", "down")
        }
        x = generator.standard_normal((2, _ROWS, _WIDTH)).astype(np.float32)
        given = [dict(zip(_NAMES, (matrix, np.array(_ROUNDS, np.int64)), strict=True)) for matrix in x]
        if framework == "tensorflow":
            return _tensorflow(weights, *given)
        return _torch(weights, *given, scripted=exporter == "torchscript")


def _torch(weights: Arrays, inputs: Arrays, calibration: Arrays, *, scripted: bool) -> Built:
    import torch
    from torch import nn

    from transect.onnx_models.models._torch import built_in_torch

    class Scripted(nn.Module):  # type: ignore[misc]
        """Python's own words for control flow, for `torch.jit.script`."""

        def __init__(self) -> None:
            super().__init__()
            for name, array in weights.items():
                self.register_buffer(name, torch.from_numpy(array))

        def forward(self, x: torch.Tensor, rounds: torch.Tensor) -> torch.Tensor:
            for _ in range(int(rounds)):
                x = torch.tanh(x @ self.turn)
            x = x @ self.up if bool(x.sum() > 0) else x @ self.down
            return x

    class Traced(Scripted):
        """The higher-order operations that `torch.export` knows."""

        def forward(self, x: torch.Tensor, rounds: torch.Tensor) -> torch.Tensor:
            from torch._higher_order_ops.while_loop import while_loop

            def more(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
                return i < rounds

            def turn(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return i + 1, torch.tanh(y @ self.turn)

            _, y = while_loop(more, turn, (torch.zeros((), dtype=torch.int64), x))
            outputs: torch.Tensor = torch.cond(y.sum() > 0, lambda y: y @ self.up, lambda y: y @ self.down, (y,))
            return outputs

    module = Scripted().eval()
    exported = torch.jit.script(module) if scripted else Traced().eval()
    return built_in_torch(module, inputs, calibration, (OUTPUT,), batched=False, exported=exported)


def _tensorflow(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import tensorflow as tf

    def model_in(dtype: tf.DType) -> object:
        def model(x: tf.Tensor, rounds: tf.Tensor) -> tuple[tf.Tensor]:
            # Made inside: the converter takes what a function finds outside for inputs.
            w = {name: tf.constant(array, dtype) for name, array in weights.items()}
            _, y = tf.while_loop(
                lambda i, y: i < rounds, lambda i, y: (i + 1, tf.tanh(y @ w["turn"])), (tf.constant(0, tf.int64), x)
            )
            up = tf.reduce_sum(y) > 0
            return (tf.cond(up, lambda: y @ w["up"], lambda: y @ w["down"]),)

        return model

    def run(model: object, floats: tf.DType) -> Arrays:
        assert callable(model)
        x, rounds = inputs.values()
        return {OUTPUT: model(tf.constant(x, floats), tf.constant(rounds))[0].numpy()}

    single = model_in(tf.float32)
    return Built(
        model=single,
        inputs=inputs,
        calibration=calibration,
        outputs=run(single, tf.float32),
        exact=run(model_in(tf.float64), tf.float64),
        batched=False,
    )
