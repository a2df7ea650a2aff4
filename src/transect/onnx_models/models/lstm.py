"""A recurrent network: an LSTM over a row of vectors, and a linear layer on its last state."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.onnx_models.exporters import INPUT, OUTPUT
from transect.onnx_models.models import MODELS, Arrays, Built, MadeModel, drawing

_INPUTS, _UNITS, _CLASSES, _LENGTH, _ROWS = 8, 32, 5, 12, 128
# Gates input, forget, cell, output one below the other: torch, Keras and MXNet agree on them.
_SHAPES: dict[str, tuple[int, ...]] = {
    "lstm.weight_ih_l0": (4 * _UNITS, _INPUTS),
    "lstm.weight_hh_l0": (4 * _UNITS, _UNITS),
    "lstm.bias_ih_l0": (4 * _UNITS,),
    "lstm.bias_hh_l0": (4 * _UNITS,),
    "head.weight": (_CLASSES, _UNITS),
    "head.bias": (_CLASSES,),
}


@MODELS.register("lstm")
class Lstm(MadeModel):
    """32 units over 12 steps of 8 numbers, then 5 outputs: 5,541 parameters."""

    frameworks = ("torch", "keras-tensorflow", "keras-torch", "mxnet")

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw as torch initialises: uniform in +-1/sqrt(units)."""
        generator = drawing(seed, "lstm")
        limit = _UNITS**-0.5
        weights = {name: generator.uniform(-limit, limit, shape).astype(np.float32) for name, shape in _SHAPES.items()}
        x = generator.standard_normal((2 * _ROWS, _LENGTH, _INPUTS)).astype(np.float32)
        makers = {"torch": _torch, "mxnet": _mxnet}
        return makers.get(framework, _keras)(weights, {INPUT: x[:_ROWS]}, {INPUT: x[_ROWS:]})


def _torch(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import torch
    from torch import nn

    from transect.onnx_models.models._torch import built_in_torch, load_state

    class Recurrent(nn.Module):  # type: ignore[misc]
        """The LSTM and its head."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(_INPUTS, _UNITS, batch_first=True)
            self.head = nn.Linear(_UNITS, _CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            states, _ = self.lstm(x)
            outputs: torch.Tensor = self.head(states[:, -1])
            return outputs

    module = load_state(Recurrent(), weights)
    return built_in_torch(module, inputs, calibration, (OUTPUT,))


def _keras(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import keras

    from transect.onnx_models.models._keras import built_in_keras

    def make() -> Any:
        x = keras.Input((_LENGTH, _INPUTS), name=INPUT)
        lstm, head = keras.layers.LSTM(_UNITS), keras.layers.Dense(_CLASSES)
        model = keras.Model(x, head(lstm(x)))
        bias = weights["lstm.bias_ih_l0"] + weights["lstm.bias_hh_l0"]
        lstm.set_weights([weights["lstm.weight_ih_l0"].T, weights["lstm.weight_hh_l0"].T, bias])
        head.set_weights([weights["head.weight"].T, weights["head.bias"]])
        return model

    return built_in_keras(make, inputs, calibration, (OUTPUT,))


def _mxnet(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    from mxnet.gluon import HybridBlock, nn, rnn

    from transect.onnx_models.models._mxnet import built_in_mxnet

    class Recurrent(HybridBlock):  # type: ignore[misc]
        """The LSTM and its head."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm = rnn.LSTM(_UNITS, layout="TNC", input_size=_INPUTS)
            self.head = nn.Dense(_CLASSES, flatten=False, in_units=_UNITS)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            states = self.lstm(F.transpose(x, axes=(1, 0, 2)))
            return self.head(F.squeeze(F.slice_axis(states, axis=0, begin=-1, end=None), axis=0))

    names = {
        "l0_i2h_weight": "lstm.weight_ih_l0",
        "l0_h2h_weight": "lstm.weight_hh_l0",
        "l0_i2h_bias": "lstm.bias_ih_l0",
        "l0_h2h_bias": "lstm.bias_hh_l0",
    }

    def make() -> tuple[Any, Arrays]:
        net = Recurrent()
        named = {getattr(net.lstm, name).name: weights[key] for name, key in names.items()}
        named |= {getattr(net.head, part).name: weights[f"head.{part}"] for part in ("weight", "bias")}
        return net, named

    return built_in_mxnet(make, inputs, calibration, (OUTPUT,))
