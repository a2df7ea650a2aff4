"""The iris network of the published Go study, as published and with layers normalised, and a variant that learns."""

from __future__ import annotations

from transect.training.layers import Layer, LayerNorm, Linear, ReLU, Sigmoid
from transect.training.workloads import WORKLOADS, Parameters, Workload


@WORKLOADS.register("iris-mlp")
class IrisMlp(Workload):
    """4-30-20-3 with sigmoids and L2 loss, learning rate 0.01, 100 epochs, as published.

    The published batch of 4 per rank becomes a global batch of 16, four ranks' worth, so that
    every number of ranks takes the same path. The published sum of gradients becomes a mean.
    """

    dataset = "iris"
    sample = (4,)
    layers: tuple[Layer, ...] = (Linear(4, 30), Sigmoid(), Linear(30, 20), Sigmoid(), Linear(20, 3), Sigmoid())
    defaults = Parameters(batch=16, epochs=100, learning_rate=0.01, loss="mse", quality_target=0.9)


@WORKLOADS.register("iris-mlp-normalised")
class IrisMlpNormalised(IrisMlp):
    """The same with what each hidden layer gives normalised per sample: mean 0, variance 1, no parameters.

    The study normalised "after each layer"; by which formula is not known. Outputs stay sigmoids: the loss sets
    them beside 0 and 1.
    """

    layers = (
        Linear(4, 30),
        Sigmoid(),
        LayerNorm(30),
        Linear(30, 20),
        Sigmoid(),
        LayerNorm(20),
        Linear(20, 3),
        Sigmoid(),
    )


@WORKLOADS.register("iris-mlp-ce")
class IrisMlpCrossEntropy(Workload):
    """The same widths with rectifiers, cross-entropy and momentum: it reaches its target."""

    dataset = "iris"
    sample = (4,)
    layers = (Linear(4, 30), ReLU(), Linear(30, 20), ReLU(), Linear(20, 3))
    defaults = Parameters(batch=16, epochs=60, learning_rate=0.02, momentum=0.9, quality_target=0.9)
