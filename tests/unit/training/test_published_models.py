"""Models that are published: as many parameters as in their papers."""

from __future__ import annotations

from math import prod

import pytest

from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, Residual, shapes, walk
from transect.training.workloads import WORKLOADS
from transect.training.workloads._resnet import resnet_cifar

# Trained parameters of the 1000-class networks as torchvision publishes them.
PUBLISHED = {50: 25_557_032, 101: 44_549_160, 152: 60_192_808}


@pytest.mark.parametrize("depth", PUBLISHED)
def test_resnet_has_the_published_number_of_parameters(depth):
    workload = WORKLOADS.get(f"images-resnet{depth}")
    heads = (1000 - 6) * (2048 + 1)
    assert workload.model.costs(workload.defaults).parameters == PUBLISHED[depth] - heads
    states = shapes(workload.layers, workload.sample)
    assert (2048, 7, 7) in states and states[-1] == (6,)
    strided = [
        placed.layer.kernel
        for placed in walk(workload.layers, workload.sample)
        if isinstance(placed.layer, Conv2d) and placed.layer.stride == 2 and "body" in placed.name
    ]
    # What makes it v1.5.
    assert strided == [3, 3, 3]


def test_resnet20_is_that_of_the_paper_with_projections():
    # 0.27 million with padded identities; the two projections add 2,752.
    model = LayeredModel(resnet_cifar(3, 10), (3, 32, 32))
    assert model.costs(WORKLOADS.get("images-resnet20").defaults).parameters == 269_722 + 2_752
    layers = WORKLOADS.get("images-resnet20").layers
    assert sum(isinstance(layer, Residual) for layer in layers) == 9
    assert sum(isinstance(layer, Residual) and bool(layer.shortcut) for layer in layers) == 2


def test_mlp_is_the_published_one():
    workload = WORKLOADS.get("images-mlp")
    widths = [shape[0] for shape in shapes(workload.layers, workload.sample) if len(shape) == 1]
    assert prod(workload.sample) == 67_500
    assert list(dict.fromkeys(widths)) == [67_500, 40, 10, 6]
