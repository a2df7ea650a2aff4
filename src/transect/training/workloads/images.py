"""Networks on images: that of the published Go study, and residual ones, with which clusters are compared."""

from __future__ import annotations

from transect.training.layers import Flatten, Linear, Sigmoid
from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import resnet_bottleneck, resnet_cifar


@WORKLOADS.register("images-mlp")
class ImagesMlp(Workload):
    """67,500-40-10-6 with sigmoids and L2 loss, learning rate 0.004, 10 epochs, as published.

    The published batch of 4 per rank becomes a global batch of 16, four ranks' worth, so that
    every number of ranks takes the same path. The published sum of gradients becomes a mean.
    It is slow to learn: ten epochs of the 180 generated training images are 110 steps and end near
    one third, those of the 10,500 of the real set are 6,570.
    """

    dataset = "images"
    sample = (3, 150, 150)
    layers = (Flatten(), Linear(3 * 150 * 150, 40), Sigmoid(), Linear(40, 10), Sigmoid(), Linear(10, 6), Sigmoid())
    defaults = Parameters(batch=16, epochs=10, learning_rate=0.004, loss="mse", quality_target=0.5, reference_steps=20)


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


class _Resnet(Workload):
    dataset = "images"
    sample = (3, 224, 224)
    defaults = Parameters(
        batch=64,
        epochs=10,
        learning_rate=0.005,
        momentum=0.9,
        weight_decay=1e-4,
        quality_target=0.6,
        warmup_steps=5,
        reference_steps=2,
        dataset_options={"generate": 64},
    )


@WORKLOADS.register("images-resnet50")
class ImagesResnet50(_Resnet):
    """ResNet-50 v1.5: 23,520,326 parameters for 6 classes (25,557,032 for 1000)."""

    layers = resnet_bottleneck(50, 6)


@WORKLOADS.register("images-resnet101")
class ImagesResnet101(_Resnet):
    """ResNet-101 v1.5: 42,512,454 parameters for 6 classes (44,549,160 for 1000)."""

    layers = resnet_bottleneck(101, 6)


@WORKLOADS.register("images-resnet152")
class ImagesResnet152(_Resnet):
    """ResNet-152 v1.5: 58,156,102 parameters for 6 classes (60,192,808 for 1000)."""

    layers = resnet_bottleneck(152, 6)
