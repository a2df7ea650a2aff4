"""Every framework's optimisers take the steps of the float64 rules, which are their papers'."""

from __future__ import annotations

import json

import numpy as np
import pytest

from checkouts import environment_python
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import Linear
from transect.training.optimisers import OPTIMISERS, OWN_OPTIMISER, update_cuts
from transect.training.workloads import Parameters, with_optimiser
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
from transect.training.accumulation import accumulating
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import Linear, Sigmoid, initial_weights
from transect.training.workloads import Parameters, with_optimiser

framework, names = FRAMEWORKS.get(sys.argv[1]), sys.argv[2].split(",")
layers = (Linear(4, 7), Sigmoid(), Linear(7, 3))
generator = np.random.default_rng(0)
batches = [(generator.standard_normal((6, 4)), generator.integers(0, 3, 6)) for _ in range(6)]
# A schedule of the user's may begin at 0.
rates = [0.0, 0.01, 0.02, 0.005, 0.005, 0.01]
deviations = {}
# Gradients here have norms from 0.4 to 0.9: the last limit scales some of them, the one before it all.
WAYS = {"usual": {}, "decay": {"decay": "matrices"}, "clip_norm": {"clip_norm": 0.1}, "clip_norm of some": {"clip_norm": 0.6},
        "accumulation": {"accumulation": 4},
        "ema": {"ema": 0.75}}
ways = {way: more for way, more in WAYS.items() if way.split()[0] in ("usual", *framework.follows)}
for name, way in [(name, way) for name in names for way in ways]:
    rule = Parameters(batch=6, epochs=1, learning_rate=0.01, optimiser=name, momentum=0.9, **ways[way],
                      weight_decay=0.1, beta1=0.8, beta2=0.95, alpha=0.7, epsilon=1e-3, quality_target=0.5)
    name = f"{name}, {way}"
    plan = ModelPlan(model=LayeredModel(layers, (4,)), parameters=rule, batch=6, precision="fp64",
                     weights=initial_weights(layers, 3), device="cpu", threads=1)
    rule_itself, single, fused = NumpyTrainer(plan), framework.trainer(plan), framework.trainer(plan)
    single = accumulating(single, rule.accumulation)
    trainers = [single, *([fused] if hasattr(fused, "step") else [])]
    everyone = [rule_itself, *trainers]

    def train(first):
        predicted = []
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
            for trainer in everyone if rule.ema else []:
                trainer.average()
        if rule.ema:
            # Twice is as before: what was there comes back.
            for trainer, times in zip(everyone, (1, 1, 3)):
                for _ in range(times):
                    trainer.exchange_averages()
            expected = rule_itself.predict(batches[0][0])
            predicted = [float(np.abs(trainer.predict(batches[0][0]) - expected).max()) for trainer in trainers]
        expected = rule_itself.weights()
        off = [max(float(np.abs(trainer.weights()[key] - array).max()) for key, array in expected.items())
                for trainer in trainers]
        if rule.ema:
            for trainer in everyone:
                trainer.exchange_averages()
        return off + predicted

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
    names = [name for name in FRAMEWORKS.get(framework).optimisers if name != OWN_OPTIMISER]
    assert "sgd" in names
    run = warm(python).run("-c", STEPS, framework, ",".join(names))
    assert run.returncode == 0, run.stderr
    deviations = json.loads(run.stdout.splitlines()[-1])
    if "adamw" in names:
        assert deviations.pop("first step")[0] < 2e-7
    ways = ("usual", "decay", "clip_norm", "clip_norm of some", "accumulation", "ema")
    follows = ("usual", *FRAMEWORKS.get(framework).follows)
    cases = [f"{name}, {way}" for name in names for way in ways if way.split()[0] in follows]
    assert set(deviations) == {*cases, *(f"{case}, resumed" for case in cases)}
    for name, found in deviations.items():
        assert max(found) < 1e-13, (name, found)


def rule_named(name, rate=0.1, **rule):
    return Parameters(batch=1, epochs=1, learning_rate=rate, optimiser=name, quality_target=0.5, **rule)


def take(name, gradients, rate=0.1, **rule):
    """Return the path of one weight that begins at 1."""
    optimiser, parameters = OPTIMISERS.get(name), rule_named(name, rate, **rule)
    weight, states = np.ones(1), [np.zeros(1) for _ in range(optimiser.states)]
    path = []
    for step, gradient in enumerate(gradients, 1):
        optimiser.update(parameters, weight, np.array([float(gradient)]), states, rate, step)
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
    # Adam sees the decay as a gradient, whose size its first step forgets: 0.1 whatever it is.
    assert take("adam", [0.0], weight_decay=0.5, epsilon=1e-12) == pytest.approx([0.9])
    # a: 0.1, 0.1 x 0.9 + 0.1 x 4; the velocity forgets half.
    roots = 1 / np.sqrt(0.1), 2 / np.sqrt(0.49)
    path = [1 - 0.1 * roots[0], 1 - 0.1 * (1.5 * roots[0] + roots[1])]
    assert take("rmsprop", [1, 2], alpha=0.9, momentum=0.5, epsilon=1e-15) == pytest.approx(path)
    # s: 9, 25. Epsilon is added to the root: 3 / (3 + 1), 4 / (5 + 1).
    assert take("adagrad", [3, 4], epsilon=1.0) == pytest.approx([1 - 0.075, 1 - 0.075 - 0.1 * 4 / 6])
    # Adam's step is as long as the weight: 0.1 of 1, then 0.1 of 0.9. At weight 0 the ratio is 1.
    assert take("lamb", [5, 5], beta1=0.0, beta2=0.0) == pytest.approx([0.9, 0.81])
    zero, states = np.zeros(2), [np.zeros(2), np.zeros(2)]
    OPTIMISERS.get("lamb").update(rule_named("lamb"), zero, np.ones(2), states, 0.1, 1)
    assert zero == pytest.approx(np.full(2, -0.1), rel=1e-5)


def test_what_an_optimiser_usually_adds_to_the_root_is_its_own():
    found = {name: rule_named(name).epsilon for name in OPTIMISERS}
    assert found == {name: {"lamb": 1e-6, "adagrad": 1e-10}.get(name, 1e-8) for name in OPTIMISERS}
    assert rule_named("lamb", epsilon=0.5).epsilon == 0.5
    assert rule_named("LAMB") == rule_named("lamb") and rule_named("Adagrad") == rule_named("adagrad")


def test_weights_are_updated_in_cuts_that_rule_and_decay_allow():
    shapes = [(3, 2), (3,), (2, 2), (4, 1, 1, 1)]

    def cuts(name, **rule):
        found = update_cuts(rule_named(name, **rule), shapes)
        return [(own.weight_decay, cut.start, cut.stop) for own, cut in found]

    assert cuts("sgd", weight_decay=0.5) == [(0.5, 0, 17)]
    assert cuts("sgd", weight_decay=0.5, decay="matrices") == [(0.5, 0, 6), (0.0, 6, 9), (0.5, 9, 17)]
    assert cuts("sgd", decay="matrices") == [(0.0, 0, 17)]
    assert cuts("lamb", weight_decay=0.5) == [(0.5, 0, 6), (0.5, 6, 9), (0.5, 9, 13), (0.5, 13, 17)]
    assert update_cuts(rule_named("sgd"), []) == []


def test_a_gradient_longer_than_the_limit_is_scaled_to_it():
    layers = (Linear(2, 1),)
    weights = {"0.weight": np.zeros((1, 2)), "0.bias": np.zeros(1)}
    for limit, expected in ((5.0, 2.5), (26.0, 13.0), (27.0, 13.0)):
        rule = rule_named("sgd", 0.5, clip_norm=limit)
        plan = ModelPlan(
            model=LayeredModel(layers, (2,)),
            parameters=rule,
            weights=weights,
            batch=1,
            precision="fp64",
            device="cpu",
            threads=1,
        )
        trainer = NumpyTrainer(plan)
        trainer.set_gradient(np.array([6.0, 8.0, 24.0]))  # of norm 26
        trainer.update(0.5)
        moved = np.concatenate([array.ravel() for array in trainer.weights().values()])
        assert np.linalg.norm(moved) == pytest.approx(expected)
        assert moved == pytest.approx(-np.array([6.0, 8.0, 24.0]) * expected / 26)


@pytest.mark.fast
def test_another_optimiser_brings_its_usual_epsilon_unless_the_workload_has_its_own():
    sgd = Parameters(batch=1, epochs=1, learning_rate=0.1, quality_target=0.5)
    assert with_optimiser(sgd, "lamb").epsilon == 1e-6
    assert with_optimiser(sgd.model_copy(update={"epsilon": 1e-3}), "lamb").epsilon == 1e-3
