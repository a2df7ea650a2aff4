"""A workload in one file."""

from transect.training.layers import Linear, ReLU
from transect.training.workloads import WORKLOADS, Parameters, Workload


@WORKLOADS.register("wine-mlp")
class WineMlp(Workload):
    """13-16-3 with a rectifier and cross-entropy."""

    dataset = "wine"
    sample = (13,)
    layers = (Linear(13, 16), ReLU(), Linear(16, 3))
    defaults = Parameters(batch=16, epochs=20, learning_rate=0.02, momentum=0.9, quality_target=0.9)
