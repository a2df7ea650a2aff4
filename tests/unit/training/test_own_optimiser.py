"""An optimiser that a function of the user's makes: torch and the reference take the same steps, what it cannot do is told."""

from __future__ import annotations

import json

import pytest

from warm import warm

pytestmark = pytest.mark.env

FILE = """
import torch

class Signs(torch.optim.Optimizer):
    # Keeps what no rule of transect's keeps, and counts in its group.
    def __init__(self, params, lr, pull):
        super().__init__(params, {"lr": lr, "pull": pull, "seen": 0})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["seen"] += 1
            for weight in group["params"]:
                kept = self.state.setdefault(weight, {"along": torch.zeros_like(weight)})["along"]
                kept.lerp_(weight.grad, group["pull"] / group["seen"])
                weight.sub_(group["lr"] * kept / (1 + kept.abs()))

class Anchored(torch.optim.Optimizer):
    # Keeps outside of its state how often it was called, and the weights that it began with.
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.calls, self.begun = 0, [p.detach().clone() for p in self.param_groups[0]["params"]]

    @torch.no_grad()
    def step(self, closure=None):
        self.calls += 1
        for group in self.param_groups:
            for weight, begun in zip(group["params"], self.begun):
                weight.sub_(group["lr"] * (weight.grad / self.calls + 0.1 * (weight - begun)))

def anchored(module, rate):
    # The bias is left as it is.
    return Anchored([module.weight], rate)

def some(module, rate):
    return torch.optim.AdamW([module.weight], rate)

def signs(module, rate):
    groups = [{"params": [p for p in module.parameters() if p.ndim > 1]},
              {"params": [p for p in module.parameters() if p.ndim < 2], "lr": rate / 3}]
    return Signs(groups, rate, 0.5)

def closure(module, rate):
    return torch.optim.LBFGS(module.parameters(), rate)

def nothing(module, rate):
    return rate

def elsewhere(module, rate):
    return torch.optim.SGD([torch.ones(1)], rate)

def rateless(module, rate):
    made = torch.optim.SGD(module.parameters(), rate)
    del made.param_groups[0]["lr"]
    return made

def wrong(module, rate):
    raise ValueError("no such rate")
"""
STEPS = """
import json, sys
from pathlib import Path
import numpy as np
import torch
from torch import nn
from transect.domain.errors import BadInput, Unsupported
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks._torch_own_optimiser import try_optimiser
from transect.training.module_model import ModuleModel
from transect.training.strategies._horovod_torch import TorchAdapter
from transect.training.workloads import Parameters

file = Path(sys.argv[1])
weights = {"weight": np.linspace(-1, 1, 12).reshape(3, 4), "bias": np.zeros(3)}
facts = {"weights": [{"name": n, "shape": list(a.shape), "trained": True} for n, a in weights.items()]}
rule = Parameters(batch=6, epochs=1, learning_rate=0.1, optimiser="function", quality_target=0.5, clip_norm=0.4)
draw = np.random.default_rng(0)
batches = [(draw.standard_normal((6, 4)), draw.integers(0, 3, 6)) for _ in range(6)]

def train(first, reference, trainer):
    for (x, y), rate in zip(batches[first:], [0.0, 0.1, 0.2, 0.05, 0.05, 0.1][first:]):
        for each in (reference, trainer):
            each.forward_backward(*each.batch(x, y))
            each.update(rate)
    ends = reference.weights(), trainer.weights()
    moved = float(np.abs(ends[0]["weight"] - weights["weight"]).max())
    return max(float(np.abs(ends[0][n] - ends[1][n]).max()) for n in weights), moved

found = {}
for name in ("signs", "anchored", "some"):
    model = ModuleModel(file=file, name="Net", options={}, own_optimiser=(file, name), facts=facts)
    plan = ModelPlan(
        model=model, parameters=rule, weights=weights, batch=6, precision="fp64", device="cpu", threads=1
    )
    reference, trainer = NumpyTrainer(plan), FRAMEWORKS.get("torch").trainer(plan)
    found[name] = [train(0, reference, trainer)]
    state = reference.state()
    # As the reference does: it goes on with an optimiser of its own.
    for again in range(2):
        fresh = NumpyTrainer(plan)
        for each in (fresh, trainer):
            each.resume(state)
        found[name].append(train(3, fresh, trainer))
    try:
        # Before Horovod is asked for anything.
        TorchAdapter(None, trainer, "mean")
    except Unsupported as error:
        found[name + " by Horovod"] = str(error)
for name in ("closure", "nothing", "wrong", "elsewhere", "rateless"):
    module = nn.Linear(4, 3)
    module(torch.ones(1, 4)).sum().backward()
    try:
        try_optimiser((file, name), module, 0.1)
    except BadInput as error:
        found[name] = str(error)
print(json.dumps(found))
"""


def test_torch_and_the_reference_update_by_the_users_optimiser(torch_python, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from torch import nn\n\nclass Net(nn.Linear):\n    def __init__(self):\n        super().__init__(4, 3)\n"
        + FILE
    )
    run = warm(torch_python).run("-c", STEPS, str(file))
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    for name in ("signs", "anchored", "some"):
        assert all(off < 1e-13 < moved for off, moved in found[name]), found
        assert found[name][1] == found[name][2]
    assert "and Anchored may keep more: expected one of torch.optim" in found["anchored by Horovod"]
    assert "this one leaves some out" in found["some by Horovod"]
    assert "LBFGS fails in its first step" in found["closure"] and "mine.py:closure" in found["closure"]
    assert "gives a float: expected a torch.optim.Optimizer" in found["nothing"]
    assert "ValueError: no such rate" in found["wrong"]
    assert "a SGD holds no parameter of the module" in found["elsewhere"]
    assert "a SGD has groups without an `lr`" in found["rateless"]
