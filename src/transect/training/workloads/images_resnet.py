"""The residual networks that clusters are compared with, on images of 224 x 224 pixels."""

from __future__ import annotations

from transect.training.layers import Shape
from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import resnet_bottleneck

_SAMPLE: Shape = (3, 224, 224)
_DEFAULTS = Parameters(
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
class ImagesResnet50(Workload):
    """ResNet-50 v1.5: 23,520,326 parameters for 6 classes (25,557,032 for 1000)."""

    dataset = "images"
    sample = _SAMPLE
    layers = resnet_bottleneck(50, 6)
    defaults = _DEFAULTS


@WORKLOADS.register("images-resnet101")
class ImagesResnet101(Workload):
    """ResNet-101 v1.5: 42,512,454 parameters for 6 classes (44,549,160 for 1000)."""

    dataset = "images"
    sample = _SAMPLE
    layers = resnet_bottleneck(101, 6)
    defaults = _DEFAULTS


@WORKLOADS.register("images-resnet152")
class ImagesResnet152(Workload):
    """ResNet-152 v1.5: 58,156,102 parameters for 6 classes (60,192,808 for 1000)."""

    dataset = "images"
    sample = _SAMPLE
    layers = resnet_bottleneck(152, 6)
    defaults = _DEFAULTS
