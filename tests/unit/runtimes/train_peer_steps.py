"""Writes what test_runner_train_peers.py trains: run by the environment of torch.

`python train_peer_steps.py FOLDER`: for each workload and optimiser a folder with `step`, `data`,
`order.bin`, `options.json` and `expected.json`, the losses of PyTorch in float64.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from transect.payloads.step_base import write_inference_models
from transect.portable_step.export import export_step
from transect.training.frameworks._torch_modules import build_module
from transect.training.frameworks._torch_optimisers import make_optimiser
from transect.training.workloads import WORKLOADS

ROWS, BATCH, STEPS = 60, 8, 20
RATES = [0.05 if step < 10 else 0.005 for step in range(STEPS)]
OPTIMISERS = {
    "sgd": {"optimiser": "sgd", "momentum": 0.0},
    "momentum": {"optimiser": "sgd", "momentum": 0.9, "weight_decay": 0.01},
    "nesterov": {"optimiser": "nesterov", "momentum": 0.9},
    "adamw": {"optimiser": "adamw", "weight_decay": 0.1},
}


def _path(module, parameters, x, y, order, micro_batches=1):
    """Return the losses of float64, from the rounded weights and rows."""
    module = module.double()
    optimiser = make_optimiser(parameters, list(module.parameters()))
    losses = []
    for step, rate in enumerate(RATES):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        means = []
        for part in range(micro_batches):
            rows = order[(step * micro_batches + part) * BATCH :][:BATCH]
            loss = torch.nn.functional.cross_entropy(module(x[rows].double()), y[rows])
            (loss / micro_batches).backward()
            means.append(loss.item())
        optimiser.step()
        losses.append(sum(means) / micro_batches)
    return losses


def _make(folder, workload, changes, generator):
    torch.manual_seed(3)
    of = WORKLOADS.get(workload)
    parameters = of.defaults.model_copy(update={"loss": "cross-entropy", **changes})
    module = build_module(of.layers).train()
    x = torch.from_numpy(generator.normal(size=(ROWS, *of.sample)).astype(np.float32))
    y = torch.from_numpy(generator.integers(0, 3, ROWS))
    optimiser = make_optimiser(parameters, list(module.parameters()))
    step = folder / "step"
    export_step(
        module,
        torch.nn.functional.cross_entropy,
        optimiser,
        [x[:3], y[:3]],
        step,
        metrics=("accuracy",),
        accumulation=True,
    )
    inference_models = write_inference_models(module, [x[:3]], ["x"], step)
    facts = {
        "workload": workload,
        "optimiser": parameters.optimiser,
        "inference_models": inference_models,
        "parameters": parameters.model_dump(mode="json"),
    }
    (step / "workload.json").write_text(json.dumps(facts))
    (folder / "data").mkdir()
    entries = [("x", "float32", x), ("y", "int64", y)]
    for name, _, tensor in entries:
        (folder / "data" / f"{name}.bin").write_bytes(tensor.numpy().tobytes())
    header = [{"name": n, "dtype": d, "shape": list(t.shape), "file": f"{n}.bin"} for n, d, t in entries]
    (folder / "data" / "header.json").write_text(json.dumps({"tensors": header}))
    order = generator.integers(0, ROWS, 2 * STEPS * BATCH)
    (folder / "order.bin").write_bytes(order.astype("<i8").tobytes())
    (folder / "options.json").write_text('{"intra_op_num_threads": 1}')
    (folder / "schedule.json").write_text(json.dumps({"lr": RATES}))
    weights = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    expected = {}
    for name, count in (("plain", 1), ("accumulate", 2)):
        module.load_state_dict(weights)
        expected[name] = _path(module, parameters, x, y, order, count)
        module.float()
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    for name, changes in OPTIMISERS.items():
        made = Path(sys.argv[1]) / name
        made.mkdir(parents=True)
        _make(made, "iris-mlp-ce", changes, np.random.default_rng(7))
