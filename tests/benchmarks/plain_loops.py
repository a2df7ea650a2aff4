"""Training loops as a person writes them by hand, on numpy and torch; what all of them share.

For `bench_training.py`. A builder takes a `Task` and returns a `Run`, which can be called again and
again: every call sets the weights back, and the momenta go on. All keep to the same rules: data in
float32 once, one thread, the loss read in every step (but in `unread`), and the test accuracy
after every epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What is to be trained: arrays in the neutral layout, and the numbers of the update rule.

    `order` is (epochs, samples); the last partial batch of an epoch is left out.
    """

    workload: str
    weights: dict[str, np.ndarray]
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    order: np.ndarray
    batch: int
    learning_rate: float
    momentum: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds of the loop, the losses of its steps, right predictions after its last epoch."""

    seconds: float
    losses: list[float | None]
    right: int


Run = Callable[[], Outcome]
Build = Callable[[Task], Run]


def loop(step: Callable[[Any], float | None], right: Callable[[], int], task: Task) -> Outcome:
    """Call `step` with the sample numbers of each batch, and `right` after each epoch."""
    losses: list[float | None] = []
    found, batch = 0, task.batch
    start = time.perf_counter()
    for order in task.order:
        for begin in range(0, len(order) - batch + 1, batch):
            losses.append(step(order[begin : begin + batch]))
        found = right()
    return Outcome(time.perf_counter() - start, losses, found)


def numpy_mlp(task: Task) -> Run:
    """4-30-20-3 with rectifiers, cross-entropy and momentum."""
    x_train, x_test = task.x_train.astype(np.float32), task.x_test.astype(np.float32)
    names = ("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias")
    w1, b1, w2, b2, w3, b3 = parameters = [task.weights[n].astype(np.float32) for n in names]
    velocities = [np.zeros_like(p) for p in parameters]
    rate, momentum, batch = task.learning_rate, task.momentum, task.batch
    rows = np.arange(batch)

    def step(indices: np.ndarray) -> float:
        x, y = x_train[indices], task.y_train[indices]
        h1 = np.maximum(x @ w1.T + b1, 0)
        h2 = np.maximum(h1 @ w2.T + b2, 0)
        z = h2 @ w3.T + b3
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z)
        sums = p.sum(axis=1, keepdims=True)
        loss = float(np.log(sums[:, 0]).sum() - z[rows, y].sum()) / batch
        p /= sums
        p[rows, y] -= 1
        p /= batch
        g2 = (p @ w3) * (h2 > 0)
        g1 = (g2 @ w2) * (h1 > 0)
        gradients = (g1.T @ x, g1.sum(axis=0), g2.T @ h1, g2.sum(axis=0), p.T @ h2, p.sum(axis=0))
        for parameter, velocity, gradient in zip(parameters, velocities, gradients, strict=True):
            velocity *= momentum
            velocity += gradient
            parameter -= rate * velocity
        return loss

    def right() -> int:
        h = np.maximum(np.maximum(x_test @ w1.T + b1, 0) @ w2.T + b2, 0)
        return int(((h @ w3.T + b3).argmax(axis=1) == task.y_test).sum())

    def run() -> Outcome:
        for name, parameter in zip(names, parameters, strict=True):
            parameter[...] = task.weights[name]
        return loop(step, right, task)

    return run


def numpy_cnn(task: Task) -> Run:
    """The layers' arithmetic is transect's own; the loop and the update are plain."""
    from transect.training.frameworks._numpy_layers import forward
    from transect.training.losses.cross_entropy import cross_entropy
    from transect.training.workloads import WORKLOADS

    layers = WORKLOADS.get("digits-cnn").layers
    x_train, x_test = task.x_train.astype(np.float32), task.x_test.astype(np.float32)
    parameters = {name: array.astype(np.float32) for name, array in task.weights.items()}
    velocities = {name: np.zeros_like(array) for name, array in parameters.items()}
    names = [[f"{i}.{part}" for part in ("weight", "bias") if f"{i}.{part}" in parameters] for i in range(len(layers))]
    weights = [[parameters[name] for name in own] for own in names]

    def step(indices: np.ndarray) -> float:
        x, y = x_train[indices], task.y_train[indices]
        tape = []
        for layer, own in zip(layers, weights, strict=True):
            x, backward = forward(layer, x, own)
            tape.append(backward)
        loss, gradient = cross_entropy(x, y, 0.0)
        gradients: dict[str, np.ndarray] = {}
        inner: Any = gradient
        for i in reversed(range(len(layers))):
            inner, found = tape[i](inner, i > 0)
            gradients.update(zip(names[i], found, strict=True))
        for name, parameter in parameters.items():
            velocities[name] *= task.momentum
            velocities[name] += gradients[name]
            parameter -= task.learning_rate * velocities[name]
        return loss

    def right() -> int:
        x = x_test
        for layer, own in zip(layers, weights, strict=True):
            x, _ = forward(layer, x, own, training=False)
        return int((x.argmax(axis=1) == task.y_test).sum())

    def run() -> Outcome:
        for name, parameter in parameters.items():
            parameter[...] = task.weights[name]
        return loop(step, right, task)

    return run


def torch_loop(task: Task, read: bool = True) -> Run:
    """Sequential, autograd, SGD, tensors indexed by a tensor: as in torch's own tutorials."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    if task.workload == "iris-mlp-ce":
        model = nn.Sequential(nn.Linear(4, 30), nn.ReLU(), nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 3))
    else:
        model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 10),
        )
    optimiser = torch.optim.SGD(model.parameters(), lr=task.learning_rate, momentum=task.momentum)
    criterion = nn.CrossEntropyLoss()
    x_train = torch.tensor(task.x_train, dtype=torch.float32)
    x_test = torch.tensor(task.x_test, dtype=torch.float32)
    y_train, y_test = torch.tensor(task.y_train), torch.tensor(task.y_test)

    def step(indices: np.ndarray) -> float | None:
        chosen = torch.from_numpy(indices)
        optimiser.zero_grad()
        loss = criterion(model(x_train[chosen]), y_train[chosen])
        loss.backward()
        optimiser.step()
        return loss.item() if read else None

    def right() -> int:
        with torch.no_grad():
            return int((model(x_test).argmax(1) == y_test).sum())

    def run() -> Outcome:
        model.load_state_dict({name: torch.tensor(w, dtype=torch.float32) for name, w in task.weights.items()})
        return loop(step, right, task)

    return run


def torch_unread(task: Task) -> Run:
    """The same, but the loss stays a tensor."""
    return torch_loop(task, read=False)


BUILDERS: dict[tuple[str, str], dict[str, Build]] = {
    ("numpy", "iris-mlp-ce"): {"plain": numpy_mlp},
    ("numpy", "digits-cnn"): {"plain": numpy_cnn},
    ("torch", "iris-mlp-ce"): {"plain": torch_loop, "unread": torch_unread},
    ("torch", "digits-cnn"): {"plain": torch_loop, "unread": torch_unread},
}
