"""The layers of trained workloads, with drawn weights: every framework that trains them builds them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from transect.onnx_models.exporters import INPUT, OUTPUT
from transect.onnx_models.models import MODELS, Arrays, Built, MadeModel, drawing
from transect.training.layers import Layer, Shape, initial_weights
from transect.training.workloads.digits import DigitsCnn, DigitsMlp
from transect.training.workloads.images import ImagesResnet20, ImagesResnet50

_STATISTICS = ("weight", "bias", "running_mean", "running_var")


def drawn_weights(layers: tuple[Layer, ...], generator: np.random.Generator) -> Arrays:
    """Draw float64 weights; batch norms are as after training: fresh ones would hide a wrong one."""
    weights = initial_weights(layers, int(generator.integers(2**31)))
    for name in [name for name in weights if name.endswith("running_var")]:
        for part in _STATISTICS:
            array = weights[name.replace("running_var", part)]
            array += generator.uniform(-0.5, 0.5, array.shape)
    return weights


class LayeredMade(MadeModel):
    """A subclass gives `name`, layers, the shape of a sample without the batch's axis, and rows."""

    name: ClassVar[str]
    layers: ClassVar[tuple[Layer, ...]]
    sample: ClassVar[Shape]
    rows: ClassVar[int] = 128

    frameworks = ("torch", "tensorflow", "keras-tensorflow", "keras-torch", "mxnet")

    def build(self, framework: str, exporter: str, seed: int) -> Built:
        """Draw weights and samples, NCHW; frameworks with channels last get them so."""
        generator = drawing(seed, self.name)
        weights = {name: array.astype(np.float32) for name, array in drawn_weights(self.layers, generator).items()}
        samples = generator.standard_normal((2 * self.rows, *self.sample)).astype(np.float32)
        makers = {"torch": self._torch, "tensorflow": self._tensorflow, "mxnet": self._mxnet}
        make = makers.get(framework, self._keras)
        return make(weights, samples[: self.rows], samples[self.rows :])

    def _torch(self, weights: Arrays, x: np.ndarray, calibration: np.ndarray) -> Built:
        import torch

        from transect.onnx_models.models._torch import built_in_torch
        from transect.training.frameworks._torch_modules import build_module, load_weights

        module = build_module(self.layers).eval()
        load_weights(module, weights, torch.float32).requires_grad_(False)
        return built_in_torch(module, {INPUT: x}, {INPUT: calibration}, (OUTPUT,))

    def _tensorflow(self, weights: Arrays, x: np.ndarray, calibration: np.ndarray) -> Built:
        import tensorflow as tf

        from transect.training.frameworks._channels_last import samples_last, to_native
        from transect.training.frameworks._tensorflow_model import Model

        native = to_native(weights, self.layers, self.sample)

        def model_in(dtype: Any) -> Any:
            variables = {name: tf.Variable(tf.cast(array, dtype)) for name, array in native.items()}
            model = Model(tf, variables, dtype)
            return lambda x: (model.outputs(self.layers, x, training=False),)

        x, calibration = samples_last(x), samples_last(calibration)
        single = model_in(tf.float32)
        return Built(
            model=single,
            inputs={INPUT: x},
            calibration={INPUT: calibration},
            outputs={OUTPUT: single(tf.constant(x))[0].numpy()},
            exact={OUTPUT: model_in(tf.float64)(tf.constant(x))[0].numpy()},
        )

    def _keras(self, weights: Arrays, x: np.ndarray, calibration: np.ndarray) -> Built:
        import keras

        from transect.onnx_models.models._keras import built_in_keras
        from transect.training.frameworks._channels_last import samples_last, to_native
        from transect.training.frameworks._keras_model import build_model

        native = to_native(weights, self.layers, self.sample)

        def make() -> Any:
            model, variables = build_model(keras, self.layers, self.sample)
            for name, array in native.items():
                variables[name].assign(array)
            return model

        return built_in_keras(make, {INPUT: samples_last(x)}, {INPUT: samples_last(calibration)}, (OUTPUT,))

    def _mxnet(self, weights: Arrays, x: np.ndarray, calibration: np.ndarray) -> Built:
        from transect.onnx_models.models._mxnet import built_in_mxnet
        from transect.training.frameworks._mxnet_model import build_net

        def make() -> tuple[Any, Arrays]:
            net, parameters = build_net(self.layers)
            return net, {parameters[name].name: array for name, array in weights.items()}

        return built_in_mxnet(make, {INPUT: x}, {INPUT: calibration}, (OUTPUT,))


@MODELS.register("cnn")
class Cnn(LayeredMade):
    """Two 3 x 3 convolutions with pooling and one linear layer, for 8 x 8 pixels: 6,090 parameters."""

    name = "cnn"
    layers = DigitsCnn.layers
    sample = DigitsCnn.sample


@MODELS.register("mlp")
class Mlp(LayeredMade):
    """64-512-512-10 with rectifiers: 301,066 parameters."""

    name = "mlp"
    layers = DigitsMlp.layers
    sample = DigitsMlp.sample


@MODELS.register("resnet20")
class Resnet20(LayeredMade):
    """ResNet-20 for 32 x 32 pixels and 6 classes: 272,214 parameters."""

    name = "resnet20"
    layers = ImagesResnet20.layers
    sample = ImagesResnet20.sample


@MODELS.register("resnet50")
class Resnet50(LayeredMade):
    """ResNet-50 v1.5 for 224 x 224 pixels and 6 classes: 23,520,326 parameters."""

    name = "resnet50"
    layers = ImagesResnet50.layers
    sample = ImagesResnet50.sample
    rows = 8
