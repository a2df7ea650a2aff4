"""A small convolutional network on handwritten digits."""

from __future__ import annotations

from transect.training.layers import Conv2d, Flatten, Linear, MaxPool2d, ReLU
from transect.training.workloads import WORKLOADS, Parameters, Workload


@WORKLOADS.register("digits-cnn")
class DigitsCnn(Workload):
    """Two 3 x 3 convolutions with pooling and one linear layer: 6,090 parameters."""

    dataset = "digits"
    sample = (1, 8, 8)
    layers = (
        Conv2d(1, 16, 3, padding=1),
        ReLU(),
        MaxPool2d(2),
        Conv2d(16, 32, 3, padding=1),
        ReLU(),
        MaxPool2d(2),
        Flatten(),
        Linear(32 * 2 * 2, 10),
    )
    defaults = Parameters(batch=64, epochs=10, learning_rate=0.02, momentum=0.9, quality_target=0.95)
