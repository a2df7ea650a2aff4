"""The layers of a trained workload, with drawn weights."""

from __future__ import annotations

from transect.onnx_models.models import MODELS
from transect.onnx_models.models._layered import LayeredMade
from transect.training.workloads.digits import DigitsCnn


@MODELS.register("cnn")
class Cnn(LayeredMade):
    """Two 3 x 3 convolutions with pooling and one linear layer, for 8 x 8 pixels: 6,090 parameters."""

    name = "cnn"
    layers = DigitsCnn.layers
    sample = DigitsCnn.sample
