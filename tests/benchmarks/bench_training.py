"""Training speed under transect against a plain loop of the same model in the same framework.

Run by hand: `python tests/benchmarks/bench_training.py [--pairs 15]`. Builds the environments
when the cache has none.

`transect` is `transect.training.worker.train` with strategy `single`, clock calls and all.
`plain` is what a person writes: data brought to float32 once, the loss read in every step, the
test accuracy after every epoch. `unread` (torch) never reads the loss. All take the same batches
in the same order from the same weights, on one thread; what is timed is the loop alone. Both
sides take turns in one process, which one begins alternates. Prints ratios of the median
samples/s; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.strategies import STRATEGIES
from transect.training.worker import train
from transect.training.workloads import WORKLOADS, Parameters

# Epochs, so that a run takes some tenths of a second.
CASES = {
    ("numpy", "iris-mlp-ce"): 600,
    ("numpy", "digits-cnn"): 5,
    ("torch", "iris-mlp-ce"): 200,
    ("torch", "digits-cnn"): 20,
}

Data = dict[str, np.ndarray]
# Seconds of the loop, and its losses.
Run = tuple[float, list[float]]


def under_transect(
    framework: str, workload: str, data: Data, weights: Data, rule: Parameters
) -> Run:
    """The worker's own loop."""
    plan = ModelPlan(
        layers=WORKLOADS.get(workload).layers, parameters=rule, weights=weights,
        precision="fp32", device="cpu", threads=1,
    )  # fmt: skip
    trainer, strategy = FRAMEWORKS.get(framework).trainer(plan), STRATEGIES.get("single")
    place = strategy.join()
    start = time.perf_counter()
    series = train(trainer, strategy, place, data, rule)
    return time.perf_counter() - start, list(series["loss"])


def numpy_mlp(data: Data, weights: Data, rule: Parameters) -> Run:
    """Written by hand: 4-30-20-3 with rectifiers, cross-entropy and momentum."""
    x_train, x_test = data["x_train"].astype(np.float32), data["x_test"].astype(np.float32)
    y_train, y_test = data["y_train"], data["y_test"]
    names = ("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias")
    w1, b1, w2, b2, w3, b3 = parameters = [weights[n].astype(np.float32) for n in names]
    velocities = [np.zeros_like(p) for p in parameters]
    rate, momentum, batch = rule.learning_rate, rule.momentum, rule.batch
    losses, rows = [], np.arange(batch)
    start = time.perf_counter()
    for order in data["order"]:
        for begin in range(0, len(order) - batch + 1, batch):
            indices = order[begin : begin + batch]
            x, y = x_train[indices], y_train[indices]
            h1 = np.maximum(x @ w1.T + b1, 0)
            h2 = np.maximum(h1 @ w2.T + b2, 0)
            z = h2 @ w3.T + b3
            z -= z.max(axis=1, keepdims=True)
            p = np.exp(z)
            sums = p.sum(axis=1, keepdims=True)
            losses.append(float(np.log(sums[:, 0]).sum() - z[rows, y].sum()) / batch)
            p /= sums
            p[rows, y] -= 1
            p /= batch
            g2 = (p @ w3) * (h2 > 0)
            g1 = (g2 @ w2) * (h1 > 0)
            gradients = (
                g1.T @ x, g1.sum(axis=0), g2.T @ h1, g2.sum(axis=0), p.T @ h2, p.sum(axis=0),
            )  # fmt: skip
            for parameter, velocity, gradient in zip(
                parameters, velocities, gradients, strict=True
            ):
                velocity *= momentum
                velocity += gradient
                parameter -= rate * velocity
        h = np.maximum(np.maximum(x_test @ w1.T + b1, 0) @ w2.T + b2, 0)
        _ = int(((h @ w3.T + b3).argmax(axis=1) == y_test).sum())
    return time.perf_counter() - start, losses


def numpy_cnn(data: Data, weights: Data, rule: Parameters) -> Run:
    """The layers' arithmetic is transect's own, the loop and the update are plain."""
    from transect.training.frameworks._numpy_layers import forward, loss_and_gradient

    layers = WORKLOADS.get("digits-cnn").layers
    x_train, x_test = data["x_train"].astype(np.float32), data["x_test"].astype(np.float32)
    y_train, y_test = data["y_train"], data["y_test"]
    parameters = {name: array.astype(np.float32) for name, array in weights.items()}
    velocities = {name: np.zeros_like(array) for name, array in parameters.items()}
    pairs = [
        (parameters.get(f"{i}.weight"), parameters.get(f"{i}.bias")) for i in range(len(layers))
    ]
    batch, losses = rule.batch, []
    start = time.perf_counter()
    for order in data["order"]:
        for begin in range(0, len(order) - batch + 1, batch):
            indices = order[begin : begin + batch]
            x, y = x_train[indices], y_train[indices]
            tape = []
            for layer, (weight, bias) in zip(layers, pairs, strict=True):
                x, backward = forward(layer, x, weight, bias)
                tape.append(backward)
            loss, gradient = loss_and_gradient("cross-entropy", x, y)
            losses.append(loss)
            gradients = {}
            for i in reversed(range(len(layers))):
                gradient, of_parameters = tape[i](gradient, i > 0)
                if of_parameters is not None:
                    gradients[f"{i}.weight"], gradients[f"{i}.bias"] = of_parameters
            for name, parameter in parameters.items():
                velocities[name] *= rule.momentum
                velocities[name] += gradients[name]
                parameter -= rule.learning_rate * velocities[name]
        x = x_test
        for layer, (weight, bias) in zip(layers, pairs, strict=True):
            x, _ = forward(layer, x, weight, bias)
        _ = int((x.argmax(axis=1) == y_test).sum())
    return time.perf_counter() - start, losses


def torch_loop(workload: str, read: bool) -> Callable[[Data, Data, Parameters], Run]:
    """Sequential, autograd, SGD, tensors indexed by a tensor: as in torch's own tutorials."""

    def run(data: Data, weights: Data, rule: Parameters) -> Run:
        import torch
        from torch import nn

        torch.set_num_threads(1)
        if workload == "iris-mlp-ce":
            model = nn.Sequential(
                nn.Linear(4, 30), nn.ReLU(), nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 3)
            )
        else:
            model = nn.Sequential(
                nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Flatten(), nn.Linear(128, 10),
            )  # fmt: skip
        model.load_state_dict({n: torch.tensor(w, dtype=torch.float32) for n, w in weights.items()})
        optimiser = torch.optim.SGD(
            model.parameters(), lr=rule.learning_rate, momentum=rule.momentum
        )
        criterion = nn.CrossEntropyLoss()
        x_train = torch.tensor(data["x_train"], dtype=torch.float32)
        x_test = torch.tensor(data["x_test"], dtype=torch.float32)
        y_train, y_test = torch.tensor(data["y_train"]), torch.tensor(data["y_test"])
        orders, batch, losses = torch.tensor(data["order"]), rule.batch, []
        start = time.perf_counter()
        for order in orders:
            for begin in range(0, len(order) - batch + 1, batch):
                indices = order[begin : begin + batch]
                optimiser.zero_grad()
                loss = criterion(model(x_train[indices]), y_train[indices])
                loss.backward()
                optimiser.step()
                if read:
                    losses.append(loss.item())
            with torch.no_grad():
                _ = int((model(x_test).argmax(1) == y_test).sum())
        return time.perf_counter() - start, losses

    return run


def contenders(framework: str, workload: str) -> dict[str, Callable[[Data, Data, Parameters], Run]]:
    """Return who takes turns."""

    def ours(data: Data, weights: Data, rule: Parameters) -> Run:
        return under_transect(framework, workload, data, weights, rule)

    if framework == "torch":
        return {
            "transect": ours,
            "plain": torch_loop(workload, read=True),
            "unread": torch_loop(workload, read=False),
        }
    return {"transect": ours, "plain": numpy_mlp if workload == "iris-mlp-ce" else numpy_cnn}


def measure(framework: str, workload: str, folder: Path, epochs: int, pairs: int) -> None:
    """Let all contenders of one case take turns; print one row for each plain loop."""
    rule = WORKLOADS.get(workload).defaults.model_copy(update={"epochs": epochs})
    with np.load(folder / "data.npz") as file:
        data = {name: file[name] for name in file.files}
    with np.load(folder / "start-0.npz") as file:
        data["order"] = file["order"]
        weights = {name: file[name] for name in file.files if name != "order"}
    runs = contenders(framework, workload)
    samples = epochs * (data["order"].shape[1] // rule.batch) * rule.batch
    rates: dict[str, list[float]] = {name: [] for name in runs}
    last: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    faults: dict[str, list[int]] = {name: [] for name in runs}
    # The first round is warm-up.
    for turn in range(pairs + 1):
        for name in sorted(runs, reverse=bool(turn % 2)):
            before, busy = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
            seconds, last[name] = runs[name](data, weights, rule)
            if turn:
                rates[name].append(samples / seconds)
                cpu[name].append(samples / (time.process_time() - busy))
                now = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
                faults[name].append(round((now - before) / (samples / rule.batch)))
    ours = statistics.median(rates["transect"])
    # Rounding grows along the path, so that only its beginning is the same number.
    head = slice(0, 20)
    for name in [name for name in runs if name != "transect"]:
        theirs = statistics.median(rates[name])
        quotients = [a / b for a, b in zip(rates["transect"], rates[name], strict=True)]
        low, _, high = statistics.quantiles(quotients, n=4, method="inclusive")
        same = ""
        if last[name]:
            same = f"{np.abs(np.subtract(last['transect'][head], last[name][head])).max():.0e}"
        steps = samples / rule.batch
        extra = 1e6 * (samples / ours - samples / theirs) / steps
        print(
            f"{framework:6s} {workload:12s} {name:7s} {ours:10.0f} {theirs:10.0f}"
            f"   {ours / theirs:.3f} ({low:.3f}-{high:.3f})"
            f"   {statistics.median(cpu['transect']) / statistics.median(cpu[name]):.3f}"
            f" {extra:+8.1f} of {1e6 * samples / theirs / steps:7.1f} us"
            f" {statistics.median(faults['transect']):6.0f} {statistics.median(faults[name]):6.0f}"
            f"  {same}",
            flush=True,
        )


def child(framework: str, folder: Path, pairs: int) -> None:
    """Measure the cases of one framework in its own environment."""
    libraries = FRAMEWORKS.get(framework).libraries()
    print(f"# {framework}: python {sys.version.split()[0]}, {libraries}", flush=True)
    for (name, workload), epochs in CASES.items():
        if name == framework:
            measure(name, workload, folder / f"{name}-{workload}", epochs, pairs)


def main() -> None:
    """Prepare the data and start one process per framework, as the plain launcher does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child[0], Path(given.child[1]), given.pairs)
    from bench_grid import about

    from transect.domain.paths import ROOT
    from transect.execution.build_environment import build
    from transect.launch import thread_variables

    print(about(pydantic=version("pydantic")))
    variables = {**os.environ, **thread_variables(1), "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pythons: dict[str, Any] = {}
        for framework in ("numpy", "torch"):
            name = FRAMEWORKS.get(framework).environment
            facts = build(name, folder / f"{name}.log")
            if facts["status"] != "ok":
                sys.exit(facts["message"])
            pythons[framework] = facts["python"]
        for (framework, workload), epochs in CASES.items():
            values = WORKLOADS.get(workload).defaults.model_dump() | {"epochs": epochs}
            used = ("batch", "epochs", "test_fraction", "dataset_options")
            spec = {
                "workload": workload, "seed": 20261120, "repeats": 1,
                "parameters": {key: values[key] for key in used},
            }  # fmt: skip
            file = folder / f"{framework}-{workload}.json"
            file.write_text(json.dumps(spec))
            argv = [
                "-m",
                "transect.training.prepare",
                "--spec",
                file,
                "--out",
                file.with_suffix(""),
            ]
            subprocess.run([pythons["numpy"], *argv], env=variables, check=True)
        print(
            "\ncolumns: framework, workload, baseline; samples/s of transect and of the baseline;"
            " their ratio (quartiles of the pairs); the same of CPU time, building the model"
            " included; what transect adds to one step, of the baseline's step; page faults per step"
            " of both; largest difference between the first 20 losses"
        )
        for framework, python in pythons.items():
            argv = [__file__, "--pairs", str(given.pairs), "--child", framework, temporary]
            subprocess.run([python, *argv], env=variables, check=True)


if __name__ == "__main__":
    main()
