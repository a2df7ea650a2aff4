"""Writes the training steps of test_runner_train.py: run by the environment of torch.

`python train_steps.py FOLDER`: a step's folder, another one with dropout, the data, and what PyTorch
computes of them. PYTHONPATH is `src`.
"""

import copy
import json
import sys
from pathlib import Path

import numpy as np
import torch

from transect.portable_step import export_step

ROWS, BATCH, STEPS = 40, 4, 24
RATE, MOMENTUM = 0.05, 0.9


class Classifier(torch.nn.Module):
    """Two layers with a batch norm between them, after a scale that is not trained."""

    def __init__(self, drop):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 1.5, 6), requires_grad=False)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(6, 128),
            torch.nn.BatchNorm1d(128),
            torch.nn.ReLU(),
            torch.nn.Dropout(drop),
            torch.nn.Linear(128, 3),
        )

    def forward(self, x):
        return self.layers(x * self.scale)


def _write_steps(folder, x, y):
    """Write both; return the module of the first as it begins."""
    torch.manual_seed(3)
    module, dropped = Classifier(0), Classifier(0.3)
    optimiser = torch.optim.SGD(module.parameters(), RATE, MOMENTUM)
    example, loss = (x[:BATCH], y[:BATCH]), torch.nn.functional.cross_entropy
    more = {"names": ("x", "y"), "metrics": ("accuracy",)}
    export_step(module, loss, optimiser, example, folder / "step", accumulation=True, **more)
    adamw = torch.optim.AdamW(dropped.parameters())
    export_step(dropped, loss, adamw, example, folder / "dropout", **more)
    return module


def _write_data(folder):
    """Write rows that can be told apart, with some noise."""
    folder.mkdir()
    generator = np.random.default_rng(5)
    y = generator.integers(0, 3, ROWS)
    x = generator.normal(size=(ROWS, 6)).astype(np.float32) + 2 * np.eye(3, 6, dtype=np.float32)[y]
    tensors = []
    for name, array in (("x", x), ("y", y)):
        array.tofile(folder / f"{name}.bin")
        entry = {"name": name, "dtype": array.dtype.name, "shape": array.shape}
        tensors.append(entry | {"file": f"{name}.bin"})
    (folder / "header.json").write_text(json.dumps({"tensors": tensors}))
    return torch.tensor(x), torch.tensor(y)


def _losses(module, x, y, order, rates):
    """Return the losses of PyTorch in float64; `order` is (steps, micro-batches, rows)."""
    model, x = copy.deepcopy(module).double(), x.double()
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 1, MOMENTUM)
    losses = []
    for step, rate in zip(order, rates, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        found = []
        for rows in step:
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            (loss / len(step)).backward()
            found.append(loss.item())
        optimiser.step()
        losses.append(sum(found) / len(found))
    return losses


def main(folder):
    """Write `step`, `dropout`, `data`, `order.bin` and `expected.json`."""
    x, y = _write_data(folder / "data")
    module = _write_steps(folder, x, y)
    order = np.random.default_rng(7).integers(0, ROWS, STEPS * 3 * BATCH)
    order.astype("<i8").tofile(folder / "order.bin")
    rates = [0.1 / (1 + i) for i in range(STEPS)]
    ones = order[: STEPS * BATCH].reshape(STEPS, 1, -1)
    expected = {
        "plain": _losses(module, x, y, ones, [RATE] * STEPS),
        "schedule": _losses(module, x, y, ones, rates),
        "accumulate": _losses(module, x, y, order.reshape(STEPS, 3, -1), [RATE] * STEPS),
        "rates": rates,
    }
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
