"""The layers of a trained workload, with drawn weights."""

from __future__ import annotations

from transect.onnx_models.models import MODELS
from transect.onnx_models.models._layered import LayeredMade
from transect.training.workloads.images import ImagesResnet50


@MODELS.register("resnet50")
class Resnet50(LayeredMade):
    """ResNet-50 v1.5 for 224 x 224 pixels and 6 classes: 23,520,326 parameters."""

    name = "resnet50"
    layers = ImagesResnet50.layers
    sample = ImagesResnet50.sample
    rows = 8
