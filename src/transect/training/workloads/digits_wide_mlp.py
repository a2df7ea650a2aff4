"""A wide and deep network on handwritten digits: far more gradient than activations."""

from __future__ import annotations

from transect.training.layers import Flatten, Layer, Linear, ReLU
from transect.training.workloads import WORKLOADS, Parameters, Workload

_WIDTH, _HIDDEN = 1024, 6


def _layers() -> tuple[Layer, ...]:
    layers: list[Layer] = [Flatten(), Linear(64, _WIDTH), ReLU()]
    for _ in range(_HIDDEN - 1):
        layers += [Linear(_WIDTH, _WIDTH), ReLU()]
    return (*layers, Linear(_WIDTH, 10))


@WORKLOADS.register("digits-wide-mlp")
class DigitsWideMlp(Workload):
    """64, six times 1024, 10 with rectifiers: 5,324,810 parameters, 21 MB of gradient in each step.

    Made for pipelines: between two layers pass 4 kB for each sample, 0.3 MB for a batch.
    """

    dataset = "digits"
    sample = (1, 8, 8)
    layers = _layers()
    defaults = Parameters(batch=64, epochs=2, learning_rate=0.05, momentum=0.9, quality_target=0.9, reference_steps=20)
