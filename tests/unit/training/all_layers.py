"""Workloads with every kind of layer: what trainers of programs are held to."""

# Every kind of layer, and what differs among convolutions and pools: padding, stride, bias, windows
# that overlap, an image that is not square at the end, residual layers with and without a shortcut. Branches of which
# one is its input, and groups, are a model of their own: Gorgonia has no groups.
WORKLOAD = """
from transect.training.layers import (
    BatchNorm2d, Branches, Conv2d, Flatten, GlobalAveragePool, Linear, MaxPool2d, ReLU, Residual, Sigmoid,
)
from transect.training.workloads import WORKLOADS, Parameters, Workload
from transect.training.workloads._resnet import _basic, _bottleneck, _preactivated


@WORKLOADS.register("all-layers")
class AllLayers(Workload):
    dataset = "digits"
    sample = (1, 8, 8)
    layers = (
        Conv2d(1, 6, 3, padding=1, bias=False), BatchNorm2d(6), ReLU(),
        MaxPool2d(3, stride=2, padding=1),
        Residual((Conv2d(6, 6, 3, padding=1), ReLU(), Conv2d(6, 6, 1), BatchNorm2d(6))), ReLU(),
        Residual(
            (Conv2d(6, 8, 3, padding=1, stride=2), Sigmoid()),
            (Conv2d(6, 8, 1, stride=2, bias=False), BatchNorm2d(8)),
        ),
        ReLU(), Conv2d(8, 8, 5, padding=2), MaxPool2d(2, stride=1), GlobalAveragePool(),
        Linear(8, 12), Sigmoid(), Linear(12, 10),
    )
    defaults = Parameters(batch=30, epochs=1, learning_rate=0.1, quality_target=0.9)


@WORKLOADS.register("branches")
class WithBranches(Workload):
    dataset = "digits"
    sample = (1, 8, 8)
    layers = (
        Conv2d(1, 4, 3, padding=1), ReLU(),
        Branches((
            (), (MaxPool2d(3, 1, 1), Conv2d(4, 3, 1), BatchNorm2d(3)), (ReLU(), Conv2d(4, 6, 3, padding=1, groups=2)),
        )),
        ReLU(), Conv2d(13, 26, 3, padding=1, stride=2, bias=False, groups=13), GlobalAveragePool(), Linear(26, 10),
    )
    defaults = Parameters(batch=30, epochs=1, learning_rate=0.1, quality_target=0.9)


@WORKLOADS.register("small-images")
class SmallImages(Workload):
    dataset = "images"
    sample = (3, 16, 16)
    layers = (Conv2d(3, 4, 3, stride=2), ReLU(), Flatten(), Linear(4 * 7 * 7, 6))
    defaults = Parameters(batch=8, epochs=1, learning_rate=0.1, quality_target=0.9)


@WORKLOADS.register("wide")
class Wide(Workload):
    dataset = "digits"
    sample = (1, 8, 8)
    layers = (Conv2d(1, 512, 3, padding=1), ReLU(), GlobalAveragePool(), Linear(512, 10))
    defaults = Parameters(batch=1300, epochs=1, learning_rate=0.1, quality_target=0.9)

@WORKLOADS.register("small-resnet")
class SmallResnet(Workload):
    dataset = "digits"
    sample = (1, 8, 8)
    layers = (
        Conv2d(1, 4, 3, 1, bias=False), BatchNorm2d(4), ReLU(),
        _basic(4, 4, 1), ReLU(), _basic(4, 8, 2), ReLU(),
        _bottleneck(8, 4, 1), ReLU(), _preactivated(16, 4, 2), BatchNorm2d(16), ReLU(),
        GlobalAveragePool(), Linear(16, 10),
    )
    defaults = Parameters(batch=30, epochs=1, learning_rate=0.1, quality_target=0.9)
"""
