"""Exports the training step of the page: run by the environment `torch`.

`python digits_step.py FOLDER`: the workload digits-cnn as a portable training step.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

from transect.portable_step import export_step


def module() -> nn.Module:
    """Two 3 x 3 convolutions with pooling and one linear layer: 6,090 parameters."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    )


def main(folder: str) -> None:
    """Write the step's folder."""
    network = module()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    example = (torch.zeros(2, 1, 8, 8), torch.zeros(2, dtype=torch.int64))
    export_step(network, functional.cross_entropy, optimiser, example, folder, metrics=["accuracy"])


if __name__ == "__main__":
    main(sys.argv[1])
