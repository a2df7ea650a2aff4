"""A network of 1,001 layers on handwritten digits: deep enough for any number of stages."""

from __future__ import annotations

from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import resnet_preactivated


@WORKLOADS.register("digits-resnet1001")
class DigitsResnet1001(Workload):
    """ResNet-1001 with pre-activation, as published for 32 x 32 pixels, on 8 x 8: 10 million parameters."""

    dataset = "digits"
    sample = (1, 8, 8)
    layers = resnet_preactivated(111, 1, 10)
    defaults = Parameters(
        batch=16, epochs=1, learning_rate=0.01, momentum=0.9, weight_decay=1e-4, quality_target=0.5, reference_steps=2
    )
