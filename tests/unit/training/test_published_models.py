"""Models that are published: as many parameters as in their papers."""

from __future__ import annotations

from math import prod

import pytest

from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, Residual, shapes, walk, weight_shapes
from transect.training.workloads import WORKLOADS
from transect.training.workloads._published_nets import INCEPTIONS, alexnet, inception, mobilenet, vgg11
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


# Trained parameters of the 1000-class networks: torchvision's alexnet and vgg11_bn, Keras' MobileNet.
# A batch norm's bias is there for the convolution's before it, which torchvision keeps besides (2,752 of them).
WHOLE = {
    "alexnet": (alexnet(1, Conv2d(3, 64, 11, 2, 4), 6, 1000), (3, 224, 224), 61_100_840),
    "vgg11": (vgg11(1, 7, 1000), (3, 224, 224), 132_868_840 - 2_752),
    "mobilenet": (mobilenet(1, 2, 1000), (3, 224, 224), 4_231_976),
    "mobilenet 0.25": (mobilenet(4, 2, 1000), (3, 224, 224), 470_072),
}
SMALL = {
    "images-alexnet": 1_800_918, "images-vgg11": 1_765_654, "images-inception": 89_274, "images-mobilenet": 214_614,
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_net_of_full_width_has_the_published_number_of_parameters(name):
    layers, sample, parameters = WHOLE[name]
    model = LayeredModel(layers, sample)
    assert model.costs(WORKLOADS.get("images-vgg11").defaults).parameters == parameters
    assert model.output == (1000,)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_net_has_the_parameters_that_it_states(name):
    workload = WORKLOADS.get(name)
    assert workload.model.costs(workload.defaults).parameters == SMALL[name]
    assert f"{SMALL[name]:,} parameters" in " ".join((type(workload).__doc__ or "").split())


def test_inception_modules_are_those_of_the_paper():
    """All of GoogLeNet with the three convolutions before them and the linear layer: 6,998,552 in Caffe's model zoo."""
    assert [inception(192, name)[1] for name in INCEPTIONS] == [256, 480, 512, 512, 512, 528, 832, 832, 1024]
    inputs, total = 192, 7 * 7 * 3 * 64 + 64 * 64 + 9 * 64 * 192 + (64 + 64 + 192) + (1024 + 1) * 1000
    for name in INCEPTIONS:
        module, inputs = inception(inputs, name)
        # Of a convolution here the bias is the batch norm's.
        total += sum(prod(w.shape) + w.shape[0] for w in weight_shapes((module,)) if len(w.shape) == 4)
    assert total == 6_998_552


def test_mobilenet_is_depthwise_in_turns():
    convolutions = [layer for layer in WORKLOADS.get("images-mobilenet").layers if isinstance(layer, Conv2d)]
    assert [layer.groups == layer.inputs > 1 for layer in convolutions[1:]] == [True, False] * 13
    assert shapes(WORKLOADS.get("images-mobilenet").layers, (3, 32, 32))[-3] == (256, 2, 2)
