"""A transformer's encoder: attention, layer norms, GELU and residuals, on vectors in a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.onnx_models.exporters import INPUT, OUTPUT
from transect.onnx_models.models import MODELS, Arrays, Built, MadeModel, drawing

_LAYERS, _HEADS, _WIDTH, _INNER, _LENGTH, _ROWS = 2, 4, 32, 64, 16, 128
_EPSILON = 1e-5
# Query, key and value stand one below the other, as torch has them.
_SHAPES: dict[str, tuple[int, ...]] = {
    "self_attn.in_proj_weight": (3 * _WIDTH, _WIDTH),
    "self_attn.in_proj_bias": (3 * _WIDTH,),
    "self_attn.out_proj.weight": (_WIDTH, _WIDTH),
    "self_attn.out_proj.bias": (_WIDTH,),
    "linear1.weight": (_INNER, _WIDTH),
    "linear1.bias": (_INNER,),
    "linear2.weight": (_WIDTH, _INNER),
    "linear2.bias": (_WIDTH,),
    "norm1.weight": (_WIDTH,),
    "norm1.bias": (_WIDTH,),
    "norm2.weight": (_WIDTH,),
    "norm2.bias": (_WIDTH,),
}


@MODELS.register("transformer-encoder")
class TransformerEncoder(MadeModel):
    """Two layers of width 32 with 4 heads on 16 vectors, normalised after each sum: 17,024 parameters."""

    frameworks = ("torch", "keras-tensorflow", "keras-torch")

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw as torch initialises: uniform in +-1/sqrt(inputs), norms near 1."""
        generator = drawing(seed, "transformer-encoder")
        weights: Arrays = {}
        for layer in range(_LAYERS):
            for name, shape in _SHAPES.items():
                limit = 0.5 if name.startswith("norm") else shape[-1] ** -0.5
                array = generator.uniform(-limit, limit, shape)
                middle = 1.0 if name in ("norm1.weight", "norm2.weight") else 0.0
                weights[f"layers.{layer}.{name}"] = (middle + array).astype(np.float32)
        x = generator.standard_normal((2 * _ROWS, _LENGTH, _WIDTH)).astype(np.float32)
        make = _torch if framework == "torch" else _keras
        return make(weights, {INPUT: x[:_ROWS]}, {INPUT: x[_ROWS:]})


def _torch(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import torch
    from torch import nn

    from transect.onnx_models.models._torch import built_in_torch, load_state

    layer = nn.TransformerEncoderLayer(
        _WIDTH, _HEADS, _INNER, dropout=0.0, activation="gelu", layer_norm_eps=_EPSILON, batch_first=True
    )
    # In prediction torch takes one fused operation for a layer, which its older exporter lacks.
    torch.backends.mha.set_fastpath_enabled(False)
    module = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
    return built_in_torch(load_state(module, weights), inputs, calibration, (OUTPUT,))


def _keras(weights: Arrays, inputs: Arrays, calibration: Arrays) -> Built:
    import keras

    from transect.onnx_models.models._keras import built_in_keras

    def make() -> Any:
        start = keras.Input((_LENGTH, _WIDTH), name=INPUT)
        x = start
        for layer in range(_LAYERS):
            layer_weights = {name: weights[f"layers.{layer}.{name}"] for name in _SHAPES}
            x = _keras_layer(keras, x, layer_weights)
        return keras.Model(start, x)

    return built_in_keras(make, inputs, calibration, (OUTPUT,))


def _keras_layer(keras: Any, x: Any, weights: Arrays) -> Any:
    """Apply one layer; Keras' kernels are (inputs, heads, size of a head) and their transpose."""
    size = _WIDTH // _HEADS
    attention = keras.layers.MultiHeadAttention(_HEADS, size)
    attended = attention(x, x)
    parts: list[np.ndarray] = []
    for kernel, bias in zip(
        np.split(weights["self_attn.in_proj_weight"], 3), np.split(weights["self_attn.in_proj_bias"], 3), strict=True
    ):
        parts += [kernel.T.reshape(_WIDTH, _HEADS, size), bias.reshape(_HEADS, size)]
    query, key, value = parts[:2], parts[2:4], parts[4:]
    out = weights["self_attn.out_proj.weight"].T.reshape(_HEADS, size, _WIDTH)
    dense = {"query": query, "key": key, "value": value, "output": [out, weights["self_attn.out_proj.bias"]]}
    for part, arrays in dense.items():
        getattr(attention, f"_{part}_dense").set_weights(arrays)
    x = _norm(keras, keras.layers.Add()([x, attended]), weights, "norm1")
    # Keras' own default of this function is the approximation by tanh.
    wide = keras.layers.Dense(_INNER, activation=lambda y: keras.ops.gelu(y, approximate=False))
    narrow = keras.layers.Dense(_WIDTH)
    changed = narrow(wide(x))
    wide.set_weights([weights["linear1.weight"].T, weights["linear1.bias"]])
    narrow.set_weights([weights["linear2.weight"].T, weights["linear2.bias"]])
    return _norm(keras, keras.layers.Add()([x, changed]), weights, "norm2")


def _norm(keras: Any, x: Any, weights: Arrays, name: str) -> Any:
    norm = keras.layers.LayerNormalization(epsilon=_EPSILON)
    y = norm(x)
    norm.set_weights([weights[f"{name}.weight"], weights[f"{name}.bias"]])
    return y
