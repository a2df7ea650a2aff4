"""The image network of the published Go study, as published."""

from __future__ import annotations

from transect.training.layers import Flatten, Linear, Sigmoid
from transect.training.workloads import WORKLOADS, Parameters, Workload


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
