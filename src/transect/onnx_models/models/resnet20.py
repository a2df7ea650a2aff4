"""The layers of a trained workload, with drawn weights."""

from __future__ import annotations

from transect.onnx_models.models import MODELS
from transect.onnx_models.models._layered import LayeredMade
from transect.training.workloads.images import ImagesResnet20


@MODELS.register("resnet20")
class Resnet20(LayeredMade):
    """ResNet-20 for 32 x 32 pixels and 6 classes: 272,214 parameters."""

    name = "resnet20"
    layers = ImagesResnet20.layers
    sample = ImagesResnet20.sample
