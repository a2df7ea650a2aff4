"""Every framework's optimisers take the steps of the float64 rules, which are their papers'."""

from __future__ import annotations

import json

import numpy as np
import pytest

from checkouts import environment_python
from transect.training.frameworks import FRAMEWORKS
from transect.training.optimisers import OPTIMISERS
from transect.training.workloads import Parameters
from warm import warm

ENVIRONMENTS = {
    "torch": "torch",
    "tensorflow": "tensorflow",
    "keras-tensorflow": "tensorflow",
    "keras-torch": "torch",
    "keras-jax": "keras-jax",
    "jax": "keras-jax",
    "keras-2": "horovod-tensorflow",
    "mxnet": "mxnet",
}
# Trains by the fused step where there is one, and by single calls; the learning rate changes. Then all
# are handed the state from the middle, and train from there again.
STEPS = """
import json, sys
import numpy as np
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import Linear, Sigmoid, initial_weights
from transect.training.workloads import Parameters

framework, names = FRAMEWORKS.get(sys.argv[1]), sys.argv[2].split(",")
layers = (Linear(4, 7), Sigmoid(), Linear(7, 3))
generator = np.random.default_rng(0)
batches = [(generator.standard_normal((6, 4)), generator.integers(0, 3, 6)) for _ in range(6)]
rates = [0.01, 0.01, 0.02, 0.005, 0.005, 0.01]
deviations = {}
for name in names:
    rule = Parameters(batch=6, epochs=1, learning_rate=0.01, optimiser=name, momentum=0.9,
                      weight_decay=0.1, beta1=0.8, beta2=0.95, epsilon=1e-3, quality_target=0.5)
    plan = ModelPlan(model=LayeredModel(layers, (4,)), parameters=rule, batch=6, precision="fp64",
                     weights=initial_weights(layers, 3), device="cpu", threads=1)
    rule_itself, single, fused = NumpyTrainer(plan), framework.trainer(plan), framework.trainer(plan)
    trainers = [single, *([fused] if hasattr(fused, "step") else [])]

    def train(first):
        for number in range(first, len(batches)):
            if number == 3:
                middle.append(rule_itself.state())
            (x, y), rate = batches[number], rates[number]
            rule_itself.forward_backward(*rule_itself.batch(x, y))
            rule_itself.update(rate)
            single.forward_backward(*single.batch(x, y))
            single.update(rate)
            if hasattr(fused, "step"):
                fused.step(*fused.batch(x, y), rate)
        expected = rule_itself.weights()
        return [max(float(np.abs(trainer.weights()[key] - array).max()) for key, array in expected.items())
                for trainer in trainers]

    middle = []
    deviations[name] = train(0)
    for trainer in (rule_itself, *trainers):
        trainer.resume(middle[0])
    deviations[f"{name}, resumed"] = train(3)
if "adamw" in names:
    # The first step in float32 is where 1 - beta2 matters most: 1e-5 off in it are 6.5e-7 here.
    rule = Parameters(batch=6, epochs=1, learning_rate=0.1, optimiser="adamw", quality_target=0.5)
    weights, (x, y) = initial_weights(layers, 3), batches[0]
    after = []
    for kind, precision in ((NumpyTrainer, "fp64"), (framework.trainer, "fp32")):
        trainer = kind(ModelPlan(model=LayeredModel(layers, (4,)), parameters=rule, batch=6, precision=precision,
                                 weights=weights, device="cpu", threads=1))
        trainer.forward_backward(*trainer.batch(x.astype(np.float64 if precision == "fp64" else np.float32), y))
        trainer.update(0.1)
        after.append(trainer.weights())
    first = max(float(np.abs(after[1][key] - array).max()) for key, array in after[0].items())
    deviations["first step"] = [first]
print(json.dumps(deviations))
"""


@pytest.mark.env
@pytest.mark.parametrize("framework", ENVIRONMENTS)
def test_a_frameworks_optimisers_are_the_float64_rules(framework, tmp_path_factory):
    python = environment_python(ENVIRONMENTS[framework], tmp_path_factory.mktemp("environment"))
    names = FRAMEWORKS.get(framework).optimisers
    assert "sgd" in names
    run = warm(python).run("-c", STEPS, framework, ",".join(names))
    assert run.returncode == 0, run.stderr
    deviations = json.loads(run.stdout.splitlines()[-1])
    if "adamw" in names:
        assert deviations.pop("first step")[0] < 2e-7
    assert set(deviations) == {*names, *(f"{name}, resumed" for name in names)}
    for name, found in deviations.items():
        assert max(found) < 1e-13, (name, found)


def take(name, gradients, rate=0.1, **rule):
    """Return the path of one weight that begins at 1."""
    optimiser = OPTIMISERS.get(name)
    parameters = Parameters(batch=1, epochs=1, learning_rate=rate, optimiser=name, quality_target=0.5, **rule)
    weight, states = np.ones(1), [np.zeros(1) for _ in range(optimiser.states)]
    path = []
    for step, gradient in enumerate(gradients, 1):
        optimiser.update(parameters, weight, np.array([gradient]), states, rate, step)
        path.append(float(weight[0]))
    return path


def test_the_rules_by_hand():
    # v: 1, 1.5; v: 1, 1.5 with a look ahead.
    assert take("sgd", [1, 1], momentum=0.5) == pytest.approx([0.9, 0.75])
    assert take("nesterov", [1, 1], momentum=0.5) == pytest.approx([0.85, 0.675])
    # The first step of Adam is the learning rate, whatever the gradient.
    assert take("adamw", [1e-3], epsilon=1e-12) == pytest.approx([0.9])
    # Decay is of the weight alone, not of the averages: 1 x (1 - 0.1 x 0.5).
    assert take("adamw", [0.0], weight_decay=0.5) == pytest.approx([0.95])
    assert take("sgd", [0.0], weight_decay=0.5) == pytest.approx([0.95])
    # m' and v' of 1, then 3: m' = (0.5 x 1 + 3 x 1) / (1 + 0.5), v' likewise of squares.
    second = 0.9 - 0.1 * ((0.5 + 3) / 1.5) / np.sqrt((0.5 + 9) / 1.5)
    assert take("adamw", [1, 3], beta1=0.5, beta2=0.5, epsilon=1e-15)[1] == pytest.approx(second)
