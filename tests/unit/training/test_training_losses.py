"""Every framework's losses are the float64 rules, whose gradients are those of their values."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_training_optimisers import ENVIRONMENTS

from checkouts import environment_python
from transect.domain.errors import BadInput
from transect.domain.metrics import METRICS
from transect.training.frameworks import FRAMEWORKS
from transect.training.losses import LOSSES, check_targets
from transect.training.workloads import Parameters
from warm import warm


def rule_of(loss, **more):
    return Parameters(batch=1, epochs=1, learning_rate=0.1, quality_target=0.5, loss=loss, **more)


GENERATOR = np.random.default_rng(3)
FEW = GENERATOR.standard_normal((4, 3))
TEXT = GENERATOR.standard_normal((2, 5, 3))
CLASSES = np.array([0, 2, 1, 1])
CASES = {
    "cross-entropy": ("cross-entropy", {}, FEW, CLASSES),
    "cross-entropy, smoothed": ("cross-entropy", {"label_smoothing": 0.2}, FEW, CLASSES),
    "next-token": ("next-token", {}, TEXT, GENERATOR.integers(0, 3, (2, 5))),
    "next-token, smoothed": ("next-token", {"label_smoothing": 0.2}, TEXT, GENERATOR.integers(0, 3, (2, 5))),
    "mse of classes": ("mse", {}, FEW, CLASSES),
    "mse": ("mse", {}, FEW, GENERATOR.standard_normal((4, 3))),
    "mse of one number": ("mse", {}, FEW[:, 0], GENERATOR.standard_normal(4)),
    "huber of classes": ("huber", {"delta": 0.3}, FEW, CLASSES),
    "huber": ("huber", {"delta": 0.7}, FEW, GENERATOR.standard_normal((4, 3))),
    "binary of classes": ("binary-cross-entropy", {}, FEW, CLASSES),
    "binary": ("binary-cross-entropy", {}, 30 * FEW, GENERATOR.integers(0, 2, (4, 3))),
    "binary of one number": ("binary-cross-entropy", {}, FEW[:, :1], np.array([[0], [1], [1], [0]])),
}


@pytest.mark.parametrize("case", CASES)
def test_a_gradient_is_that_of_the_value(case):
    loss, more, outputs, y = CASES[case]
    rule, made = rule_of(loss, **more), LOSSES.get(loss)
    value, gradient = made.value_and_gradient(rule, outputs, y)
    assert gradient.shape == outputs.shape and gradient.dtype == np.float64
    for place in np.ndindex(outputs.shape):
        step = np.zeros_like(outputs)
        step[place] = 1e-6
        up, down = (made.value_and_gradient(rule, outputs + sign * step, y)[0] for sign in (1, -1))
        assert gradient[place] == pytest.approx((up - down) / 2e-6, abs=2e-8)
    assert np.isfinite(value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_many_batches_get_the_bits_of_each_alone(case, dtype):
    loss, more, outputs, y = CASES[case]
    rule, made = rule_of(loss, **more), LOSSES.get(loss)
    many = np.stack([(scale * outputs).astype(dtype) for scale in (1, -0.5, 2)])
    targets = np.stack([y, y[::-1], y])
    values, gradients = made.each(rule, many, targets)
    assert gradients.dtype == dtype and values.shape == (3,)
    for place, batch in enumerate(zip(many, targets, strict=True)):
        value, gradient = made.value_and_gradient(rule, *batch)
        assert value == float(values[place])
        np.testing.assert_array_equal(gradients[place], gradient)


def test_a_loss_of_another_value_does_not_keep_the_way_of_the_first():
    class Doubled(type(LOSSES.get("mse"))):
        def value_and_gradient(self, rule, outputs, y):
            value, gradient = super().value_and_gradient(rule, outputs, y)
            return 2 * value, 2 * gradient

    rule = rule_of("mse")
    value, gradient = Doubled().value_and_gradient(rule, FEW, CLASSES)
    values, gradients = Doubled().each(rule, FEW[np.newaxis], CLASSES[np.newaxis])
    assert values[0] == value
    np.testing.assert_array_equal(gradients[0], gradient)


def test_the_losses_by_hand():
    def value(loss, outputs, y, **more):
        return LOSSES.get(loss).value_and_gradient(rule_of(loss, **more), np.array(outputs), np.array(y))[0]

    two = [[0.0, np.log(3)]]  # shares 1/4 and 3/4
    assert value("cross-entropy", two, [0]) == pytest.approx(np.log(4))
    smoothed = 0.8 * np.log(4) + 0.2 * (np.log(4) + np.log(4 / 3)) / 2
    assert value("cross-entropy", two, [0], label_smoothing=0.2) == pytest.approx(smoothed)
    assert value("next-token", [[two[0], [0.0, 0.0]]], [[1, 0]]) == pytest.approx((np.log(4 / 3) + np.log(2)) / 2)
    # Half the distance to (0, 1), summed; the mean of squares.
    assert value("mse", [[1.0, 3.0]], [1]) == pytest.approx(2.5)
    assert value("mse", [[1.0, 3.0]], [[0.0, 1.0]]) == pytest.approx(2.5)
    assert value("mse", [1.0, 3.0], [0.0, 1.0]) == pytest.approx(2.5)
    assert value("mse", [[1.0], [3.0], [2.0]], [[0.0], [1.0], [2.0]]) == pytest.approx(5 / 3)
    # 0.5 is a square, 3 is not: 0.125 and 2 (3 - 1).
    assert value("huber", [[0.5, 3.0]], [[0.0, 0.0]], delta=2.0) == pytest.approx((0.125 + 4) / 2)
    assert value("binary-cross-entropy", [[np.log(3), -800.0]], [[1, 0]]) == pytest.approx(np.log(4 / 3) / 2)


def test_scores_are_means_over_samples():
    def score(loss, outputs, y):
        return LOSSES.get(loss).score_sum(np.array(outputs), np.array(y))

    assert score("cross-entropy", [[1, 2], [3, 1]], [1, 1]) == 1
    assert score("next-token", [[[1, 2], [3, 1]]], [[1, 1]]) == 0.5
    assert score("mse", [[1.0, 3.0], [0, 0]], [[0.0, 1.0], [0, 4]]) == 2.5 + 8
    assert score("mse", [1.0, 3.0], [0.0, 1.0]) == 5
    assert score("huber", [[1.0, 3.0], [0, 0]], [[0.0, 1.0], [0, -4]]) == 1.5 + 2
    assert score("binary-cross-entropy", [[1.0, -2.0], [0.5, 0.5]], [[1, 1], [1, 1]]) == 1.5
    assert {LOSSES.get(name).score for name in LOSSES} <= METRICS.keys()


@pytest.mark.parametrize(
    ("loss", "output", "y", "classes", "message"),
    [
        ("cross-entropy", (3,), CLASSES, ("a", "b", "c"), None),
        (
            "cross-entropy",
            (2,),
            CLASSES,
            ("a", "b", "c"),
            "from 0 on for outputs (n, 3), or more of them: outputs are (n, 2)",
        ),
        ("cross-entropy", (9,), CLASSES, ("a", "b", "c"), None),
        (
            "cross-entropy",
            (3, 3),
            CLASSES,
            ("a", "b", "c"),
            "for outputs (n, 3), or more of them: outputs are (n, 3, 3)",
        ),
        ("cross-entropy", (3,), FEW, (), "targets float64 of shape (n, 3)"),
        ("mse", (3,), FEW, (), None),
        ("mse", (), FEW[:, 0], (), None),
        # Torch would broadcast both, and print a warning.
        ("mse", (1,), FEW[:, 0], (), "real numbers of the outputs' shape, (n, 1)"),
        ("huber", (), FEW[:, :1], (), "targets float64 of shape (n, 1)"),
        ("mse", (3,), CLASSES, ("a", "b", "c"), "targets int64 of shape (n, ), 3 classes"),
        ("binary-cross-entropy", (), np.array([0, 1, 1]), ("a", "b"), None),
        ("binary-cross-entropy", (2,), np.array([[0, 1], [1, 0]]), (), None),
        ("binary-cross-entropy", (1,), np.array([0, 1, 1]), ("a", "b"), "zeros and ones of the outputs' shape"),
        ("binary-cross-entropy", (), np.array([0.5, 1.0]), (), "zeros and ones"),
        ("next-token", (5, 3), np.array([[0, 1, 2, 2, 1]]), (), None),
        ("next-token", (5, 3), np.array([[0, 1, 3, 2, 1]]), (), "token numbers (n, time)"),
        ("next-token", (5, 3), np.array([[0, 1]]), (), "targets int64 of shape (n, 2)"),
        ("next-token", (3,), CLASSES, ("a", "b", "c"), "token numbers (n, time)"),
    ],
)
def test_targets_that_a_loss_cannot_take_are_told(loss, output, y, classes, message):
    if message is None:
        check_targets(loss, output, y, classes)
    else:
        with pytest.raises(BadInput) as raised:
            check_targets(loss, output, y, classes)
        assert message in str(raised.value)


# Of class numbers, with outputs far from 0 too: a few steps by single calls and by the fused one.
STEPS = """
import json, sys
import numpy as np
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import Linear, Sigmoid, initial_weights
from transect.training.workloads import Parameters

framework = FRAMEWORKS.get(sys.argv[1])
layers = (Linear(4, 7), Sigmoid(), Linear(7, 3))
generator = np.random.default_rng(0)
batches = [(generator.standard_normal((6, 4)), generator.integers(0, 3, 6)) for _ in range(3)]
deviations = {}
for loss in framework.losses:
    smoothed = loss == "cross-entropy" and "label_smoothing" in framework.follows
    for more in [{}] + [{"label_smoothing": 0.3}] * smoothed + [{"delta": 0.4}] * (loss == "huber"):
        for scale in (1, 40):
            rule = Parameters(batch=6, epochs=1, learning_rate=0.1, quality_target=0.5, loss=loss, **more)
            weights = {name: scale * array for name, array in initial_weights(layers, 3).items()}
            plan = ModelPlan(model=LayeredModel(layers, (4,)), parameters=rule, batch=6, precision="fp64",
                             weights=weights, device="cpu", threads=1)
            exact, single, fused = NumpyTrainer(plan), framework.trainer(plan), framework.trainer(plan)
            off = []
            for x, y in batches:
                expected = exact.forward_backward(*exact.batch(x, y))
                exact.update(0.1)
                found = [single.forward_backward(*single.batch(x, y))]
                single.update(0.1)
                if hasattr(fused, "step"):
                    found.append(fused.step(*fused.batch(x, y), 0.1))
                off += [abs(loss - expected) / scale for loss in found]
            for trainer in (single, fused) if hasattr(fused, "step") else (single,):
                off += [float(np.abs(trainer.weights()[key] - array).max()) / scale
                        for key, array in exact.weights().items()]
            deviations[f"{loss} {more} x{scale}"] = max(off)
print(json.dumps(deviations))
"""


@pytest.mark.env
@pytest.mark.parametrize("framework", ENVIRONMENTS)
def test_a_frameworks_losses_are_the_float64_rules(framework, tmp_path_factory):
    python = environment_python(ENVIRONMENTS[framework], tmp_path_factory.mktemp("environment"))
    losses = [name for name in FRAMEWORKS.get(framework).losses if name != "next-token"]
    run = warm(python).run("-c", STEPS.replace("framework.losses", str(losses)), framework)
    assert run.returncode == 0, run.stderr
    deviations = json.loads(run.stdout.splitlines()[-1])
    more = ("label_smoothing" in FRAMEWORKS.get(framework).follows) + ("huber" in losses)
    assert len(deviations) == 2 * (len(losses) + more)
    for name, off in deviations.items():
        assert off < 1e-13, (name, off)


TORCH = """
import json, sys
import numpy as np, torch
from transect.training.frameworks._torch_losses import loss_function
from transect.training.losses import LOSSES
from transect.training.workloads import Parameters

off = {}
for name, (loss, more, outputs, y) in json.loads(sys.argv[1]).items():
    rule = Parameters(batch=1, epochs=1, learning_rate=0.1, quality_target=0.5, loss=loss, **more)
    outputs, y = np.array(outputs), np.array(y)
    value, gradient = LOSSES.get(loss).value_and_gradient(rule, outputs, y)
    tensor = torch.tensor(outputs, requires_grad=True)
    found = loss_function(rule, None)(tensor, torch.tensor(y))
    found.backward()
    off[name] = max(abs(found.item() - value), float(np.abs(tensor.grad.numpy() - gradient).max()))
print(json.dumps(off))
"""


@pytest.mark.env
def test_torchs_losses_of_all_targets_are_the_rules(tmp_path_factory):
    python = environment_python("torch", tmp_path_factory.mktemp("environment"))
    given = {name: (loss, more, o.tolist(), y.tolist()) for name, (loss, more, o, y) in CASES.items()}
    run = warm(python).run("-c", TORCH, json.dumps(given))
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found.keys() == CASES.keys()
    assert max(found.values()) < 1e-13, found
