"""The layers of a trained workload, with drawn weights."""

from __future__ import annotations

from transect.onnx_models.models import MODELS
from transect.onnx_models.models._layered import LayeredMade
from transect.training.workloads.digits import DigitsMlp


@MODELS.register("mlp")
class Mlp(LayeredMade):
    """64-512-512-10 with rectifiers: 301,066 parameters."""

    name = "mlp"
    layers = DigitsMlp.layers
    sample = DigitsMlp.sample
