"""A small residual network on small images: batch norm and shortcuts that one core trains."""

from __future__ import annotations

from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import resnet_cifar


@WORKLOADS.register("images-resnet20")
class ImagesResnet20(Workload):
    """ResNet-20 for 32 x 32 pixels, with projections: 272,214 parameters for 6 classes."""

    dataset = "images"
    sample = (3, 32, 32)
    layers = resnet_cifar(3, 6)
    defaults = Parameters(
        batch=32,
        epochs=3,
        learning_rate=0.007,
        momentum=0.9,
        weight_decay=1e-4,
        quality_target=0.6,
        reference_steps=6,
        dataset_options={"generate": 64},
    )
