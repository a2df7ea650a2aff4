"""Networks on images: that of the published Go study, residual ones, with which clusters are compared, and small older ones."""

from __future__ import annotations

from transect.training.layers import Conv2d, Flatten, Linear, Sigmoid
from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._published_nets import alexnet, inception_small, mobilenet, vgg11
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


class _Small(Workload):
    dataset = "images"
    sample = (3, 32, 32)
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


@WORKLOADS.register("images-resnet20")
class ImagesResnet20(_Small):
    """ResNet-20 for 32 x 32 pixels, with projections: 272,214 parameters for 6 classes."""

    layers = resnet_cifar(3, 6)


@WORKLOADS.register("images-alexnet")
class ImagesAlexnet(_Small):
    """AlexNet for 32 x 32 pixels, a quarter of its widths: 1,800,918 parameters for 6 classes.

    The paper's five convolutions, three poolings and three linear layers; its first convolution is 5 x 5 with stride 1
    for 11 x 11 with stride 4, which would leave 1 x 1 pixel of small images after the second pooling. It has no batch
    norm: from the pipeline's initial weights SGD stays where it begins, so it is trained by AdamW.
    """

    layers = alexnet(4, Conv2d(3, 16, 5, 2), 3, 6)
    defaults = _Small.defaults.model_copy(
        update={"optimiser": "adamw", "learning_rate": 0.001, "momentum": 0.0, "epochs": 5, "quality_target": 0.5}
    )


@WORKLOADS.register("images-vgg11")
class ImagesVgg11(_Small):
    """VGG-11 for 32 x 32 pixels, a quarter of its widths: 1,765,654 parameters for 6 classes.

    All layers of the paper's, whose five poolings leave 1 x 1 pixel of 32 x 32, and a batch norm after each convolution,
    without which it hardly begins to learn.
    """

    layers = vgg11(4, 1, 6)
    defaults = _Small.defaults.model_copy(update={"epochs": 4})


@WORKLOADS.register("images-inception")
class ImagesInception(_Small):
    """Four inception modules for 32 x 32 pixels, a quarter of their widths: 89,274 parameters for 6 classes.

    The paper's modules 3a, 3b, 4a and 4b with their four branches and 5 x 5 convolutions, normalised as in its second
    version; one 3 x 3 convolution before them, and no classifiers at their side.
    """

    layers = inception_small((("3a", "3b"), ("4a", "4b")), 4, 6)


@WORKLOADS.register("images-mobilenet")
class ImagesMobilenet(_Small):
    """MobileNet for 32 x 32 pixels with the paper's width multiplier 0.25: 214,614 parameters for 6 classes.

    All 27 convolutions of the paper's, 13 of them depthwise; the first one has stride 1, not 2, so that 2 x 2 pixels are left.
    Trained by AdamW: SGD is slow to begin.
    """

    layers = mobilenet(4, 1, 6)
    defaults = _Small.defaults.model_copy(
        update={
            "batch": 16,
            "epochs": 8,
            "optimiser": "adamw",
            "learning_rate": 0.006,
            "momentum": 0.0,
            "quality_target": 0.5,
        }
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
