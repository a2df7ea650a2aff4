"""A workload for tests: every kind of layer that ResNet-20 has, in 8 of its 20 layers to compile."""

from __future__ import annotations

from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import resnet_cifar


@WORKLOADS.register("test-resnet8")
class Resnet8(Workload):
    """ResNet-8 for 32 x 32 pixels: one block without and two with projections."""

    dataset = "images"
    sample = (3, 32, 32)
    layers = resnet_cifar(1, 6)
    defaults = Parameters(
        batch=12,
        epochs=3,
        learning_rate=0.007,
        momentum=0.9,
        weight_decay=1e-4,
        quality_target=0.6,
        reference_steps=8,
        dataset_options={"generate": 8},
    )
