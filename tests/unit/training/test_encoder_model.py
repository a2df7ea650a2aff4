"""The encoder as a model: numpy's gradients, torch's path, and what it is counted to cost."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from transect.domain.errors import BadInput
from transect.training.encoder_model import TextEncoder
from transect.training.frameworks import ModelPlan
from transect.training.text_encoder import EncoderConfig
from transect.training.workloads import Parameters
from warm import warm

CONFIG = EncoderConfig(vocabulary=20, width=6, heads=2, layers=2, ffn=5, length=5, classes=3)
RULE = Parameters(batch=4, epochs=1, learning_rate=0.1, momentum=0.9, quality_target=0.5)
CHOICES: dict[str, dict[str, Any]] = {
    "right": {},
    "published": {"reshape": "published"},
    "no mask": {"mask": False},
    "no positions": {"positions": False},
    "flatten": {"pooling": "flatten"},
    "flatten, no mask": {"pooling": "flatten", "mask": False},
    "frozen": {"embedding": "frozen"},
}


def batch(config: EncoderConfig, rows: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Rows of every length, one without any word."""
    generator = np.random.default_rng(2)
    x = generator.integers(1, config.vocabulary, (rows, config.length))
    for row in range(rows):
        x[row, config.length - row * config.length // (rows - 1) :] = 0
    return x, generator.integers(0, config.classes, rows)


def bound(model: TextEncoder, dtype: Any = np.float64) -> tuple[Any, dict, dict]:
    weights = {name: array.astype(dtype) for name, array in model.initial_weights(3).items()}
    gradients = {
        weight.name: np.full(weight.shape, np.nan, dtype) for weight in model.weight_shapes() if weight.trained
    }
    return model.computation(RULE, weights, gradients), weights, gradients


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
def test_gradients_are_those_of_finite_differences(choice: str, loss: str) -> None:
    model = TextEncoder(replace(CONFIG, **CHOICES[choice]))
    x, y = batch(model.config)
    rule = RULE.model_copy(update={"loss": loss})
    _, weights, gradients = bound(model)
    computation = model.computation(rule, weights, gradients)
    computation.loss(x, y)
    found = {name: array.copy() for name, array in gradients.items()}
    generator = np.random.default_rng(0)
    assert ("embedding.weight" in found) == (choice != "frozen")
    for name, gradient in found.items():
        direction = generator.standard_normal(gradient.shape)
        if name == "embedding.weight":
            # Padding's row stays what it is.
            assert not gradient[0].any()
            direction[0] = 0
        losses = []
        for step in (1e-5, -1e-5):
            weights[name] += step * direction
            losses.append(computation.loss(x, y))
            weights[name] -= step * direction
        slope = (losses[0] - losses[1]) / 2e-5
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=1e-6, abs=1e-9), name


def test_single_precision_stays_single() -> None:
    computation, _, gradients = bound(TextEncoder(CONFIG), np.float32)
    x, y = batch(CONFIG)
    assert np.isfinite(computation.loss(x, y))
    assert computation.outputs(x).dtype == np.float32
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for array in gradients.values())


PATHS = """
import json, pickle, sys
import numpy as np
from transect.training.frameworks import FRAMEWORKS

found = {}
for name, plan, (x, y) in pickle.load(sys.stdin.buffer):
    trainers = [FRAMEWORKS.get(one).trainer(plan) for one in ("numpy", sys.argv[1])]
    losses = []
    for step in range(4):
        losses.append([t.forward_backward(*t.batch(x, y)) for t in trainers])
        for t in trainers:
            t.update(plan.parameters.learning_rate)
    one, other = (t.weights() for t in trainers)
    assert one.keys() == other.keys()
    outputs = [t.predict(x) for t in trainers]
    # A bias of the keys adds the same to all scores of a place: its gradient is rounding, which
    # AdamW divides by its own size.
    found[name] = {
        "loss": float(np.abs(np.diff(losses)).max()), "moved": losses[0][0] - losses[-1][0],
        "outputs": float(np.abs(outputs[0] - outputs[1]).max()),
        "weights": max(float(np.abs(one[n] - other[n]).max()) for n in one
                       if not n.endswith("in_proj_bias"))}
print(json.dumps(found))
"""


def plans(precision: str) -> list[tuple[str, ModelPlan, tuple[np.ndarray, np.ndarray]]]:
    made = []
    for name, optimiser in product(CHOICES, ("sgd", "adamw")):
        model = TextEncoder(replace(CONFIG, **CHOICES[name]))
        rule = {"optimiser": optimiser, "weight_decay": 0.01}
        rule |= {"learning_rate": 0.1 if optimiser == "sgd" else 0.003}
        plan = ModelPlan(
            model=model,
            parameters=RULE.model_copy(update=rule),
            weights=model.initial_weights(4),
            batch=4,
            precision=precision,
            device="cpu",
            threads=1,
        )
        made.append((f"{name} {optimiser}", plan, batch(model.config)))
    return made


@pytest.mark.env
@pytest.mark.parametrize(("framework", "environment"), [("torch", "torch"), ("jax", "keras-jax")])
# A process has one precision: to JAX it is a setting of all.
@pytest.mark.parametrize(("precision", "most"), [("fp64", 1e-12), ("fp32", 1e-5)])
def test_frameworks_follow_numpys_path(framework, environment, precision, most, tmp_path) -> None:  # type: ignore[no-untyped-def]
    run = warm(environment_python(environment, tmp_path)).run(
        "-c", PATHS, framework, input=pickle.dumps(plans(precision))
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert len(found) == 2 * len(CHOICES)
    for name, apart in found.items():
        assert apart["moved"] > 1e-3, name
        assert max(apart[key] for key in ("loss", "outputs", "weights")) <= most, (name, apart)


def test_a_drop_out_is_no_workloads() -> None:
    with pytest.raises(BadInput, match="no dropout"):
        TextEncoder(replace(CONFIG, dropout=0.1))


def test_data_must_fit() -> None:
    model = TextEncoder(CONFIG)
    model.check_data((5,), np.zeros(2, np.int64), ("a", "b", "c"))
    with pytest.raises(BadInput, match=r"shape \(6,\), the model takes \(5,\)"):
        model.check_data((6,), np.zeros(2, np.int64), ("a", "b", "c"))
    with pytest.raises(BadInput, match="3 outputs for 2 classes"):
        model.check_data((5,), np.zeros(2, np.int64), ("a", "b"))


def test_drawn_texts_are_texts() -> None:
    model = TextEncoder(CONFIG)
    for seed in range(20):
        x, y = model.draw(np.random.default_rng(seed))
        words = np.count_nonzero(x)
        assert x.dtype == np.int64 and x.shape == (5,) and words >= 1
        assert x[:words].all() and x.max() < 20 and 0 <= y < 3


def test_costs_are_counted() -> None:
    config = EncoderConfig(vocabulary=20, width=6, heads=2, layers=1, ffn=5, length=4, classes=3)
    costs = TextEncoder(config).costs(RULE)
    assert costs.parameters == 20 * 6 + 18 * 6 + 18 + 6 * 6 + 6 + 5 * 6 + 5 + 6 * 5 + 6 + 4 * 6 + 3 * 6 + 3
    assert costs.prediction_weights == costs.parameters - 19 * 6
    maps = 2 * 4 * (6 * 18 + 6 * 6 + 6 * 5 + 5 * 6)
    products, scores = 2 * 2 * 4 * 4 * 6, 2 * 4 * 4
    # Positions, the rectifier, two sums and two norms, the mean, the head.
    elementwise = 24 + 20 + 2 * 24 + 2 * 7 * 24 + 24 + 6 + 2 * 6 * 3
    assert costs.prediction_flops == maps + products + 3 * scores + elementwise
    biases = 4 * (18 + 6 + 5 + 6)
    back = 2 * maps + biases + 2 * products + 4 * scores + 20 + 2 * 24 + 2 * (3 + 8) * 24
    ends = 2 * 2 * 6 * 3 + 3 + 6 + 24
    assert costs.training_flops == costs.prediction_flops + back + ends + 3 * 3 + 4
    frozen = TextEncoder(replace(config, embedding="frozen")).costs(RULE)
    # Neither the table's rows nor the first layer's input need a gradient.
    assert costs.training_flops - frozen.training_flops == 24 + 2 * 4 * 6 * 18 + 24
    assert frozen.parameters == costs.parameters - 20 * 6
