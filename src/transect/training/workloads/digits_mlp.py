"""A wide network on handwritten digits: many weights for little arithmetic."""

from __future__ import annotations

from transect.training.layers import Flatten, Linear, ReLU
from transect.training.workloads import WORKLOADS, Parameters, Workload


@WORKLOADS.register("digits-mlp")
class DigitsMlp(Workload):
    """64-512-512-10 with rectifiers: 301,066 parameters, 1.2 MB of gradient in each step.

    Made for studies of the network: what it communicates weighs more than what it computes.
    """

    dataset = "digits"
    sample = (1, 8, 8)
    layers = (Flatten(), Linear(64, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10))
    defaults = Parameters(batch=64, epochs=4, learning_rate=0.05, momentum=0.9, quality_target=0.9)
