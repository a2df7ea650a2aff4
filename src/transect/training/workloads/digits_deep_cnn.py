"""A deep convolutional network on handwritten digits: far more activations than weights."""

from __future__ import annotations

from transect.training.layers import Conv2d, Flatten, Layer, Linear, ReLU
from transect.training.workloads import WORKLOADS, Parameters, Workload

_CHANNELS, _CONVOLUTIONS = 16, 48


def _layers() -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for number in range(_CONVOLUTIONS):
        layers += [Conv2d(_CHANNELS if number else 1, _CHANNELS, 3, padding=1), ReLU()]
    return (*layers, Flatten(), Linear(_CHANNELS * 64, 10))


@WORKLOADS.register("digits-deep-cnn")
class DigitsDeepCnn(Workload):
    """48 convolutions of 16 channels with rectifiers: 119,450 parameters.

    Made for training past the memory: in single precision each sample leaves 0.2 MB of activations,
    all weights take 0.5 MB, and eight times the batch still leaves each layer a sixth of it all.
    """

    dataset = "digits"
    sample = (1, 8, 8)
    layers = _layers()
    defaults = Parameters(batch=64, epochs=1, learning_rate=0.005, momentum=0.9, quality_target=0.5, reference_steps=2)
