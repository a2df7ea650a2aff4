"""Gradients, costs, batches, the reference's tolerance, intervals."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from transect.domain.precisions import PRECISIONS
from transect.measure.intervals import wilson
from transect.training.costs import step_costs
from transect.training.datasets import DATASETS
from transect.training.datasets.digits import Digits
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.inputs import StoredBatches
from transect.training.layered import LayeredModel
from transect.training.layers import Conv2d, Flatten, Linear, MaxPool2d, ReLU, initial_weights, shapes
from transect.training.layout import Layout, Share
from transect.training.losses import LOSSES
from transect.training.tolerance import loss_rounding, tolerance_of
from transect.training.workloads import WORKLOADS, Parameters, model_of
from warm import warm

RULE = Parameters(batch=8, epochs=1, learning_rate=0.1, quality_target=1)


@pytest.mark.parametrize("workload", ["iris-mlp", "iris-mlp-normalised", "iris-mlp-ce", "digits-cnn"])
def test_gradients_agree_with_finite_differences(workload):
    """Numpy's: all others are held to it."""
    chosen = WORKLOADS.get(workload)
    generator = np.random.default_rng(0)
    weights = initial_weights(chosen.layers, 3)
    trainer = NumpyTrainer(
        ModelPlan(
            model=model_of(chosen),
            batch=6,
            parameters=chosen.defaults,
            weights=weights,
            precision="fp64",
            device="cpu",
            threads=1,
        )
    )
    batch = trainer.batch(generator.standard_normal((6, *chosen.sample)), generator.integers(0, 3, 6))
    trainer.forward_backward(*batch)
    gradient, flat = trainer.gradient().copy(), trainer.flat_weights
    for index in generator.choice(flat.size, 60, replace=False):
        losses = []
        for step in (1e-5, -1e-5):
            flat[index] += step
            losses.append(trainer.forward_backward(*batch))
            flat[index] -= step
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(gradient[index], abs=1e-8)


def test_the_loss_of_a_certain_class_may_err_as_a_sum_of_one_does():
    """Of one sample it nearly vanishes, and float32 cannot tell 1 and a little: no share of the loss is so much."""
    unit = PRECISIONS["fp32"].unit_roundoff
    outputs, y = np.array([[11.3, 0.2, 1.1]]), np.array([0])
    loss, rounded = (
        LOSSES.get("cross-entropy").value_and_gradient(RULE, outputs.astype(dtype), y)[0] for dtype in ("f8", "f4")
    )
    path = SimpleNamespace(loss=np.array([loss]), weights={})
    [strict] = tolerance_of(path, [], noise=6 * unit, least=0.0).loss
    [allowed] = tolerance_of(path, [], noise=6 * unit, least=loss_rounding("cross-entropy", unit)).loss
    assert strict < abs(rounded - loss) < allowed
    # Nobody computes it in bfloat16, and a square has no such sum.
    assert loss_rounding("next-token", PRECISIONS["amp-bf16"].unit_roundoff) == unit and not loss_rounding("mse", unit)


def test_shapes_refuse_a_layer_that_does_not_fit():
    with pytest.raises(ValueError, match="layer 1"):
        shapes((Linear(4, 3), Linear(4, 2)), (4,))
    with pytest.raises(ValueError, match="layer 0"):
        shapes((MaxPool2d(3),), (1, 8, 8))
    for layer in (Conv2d(4, 4, 3, groups=0), Conv2d(4, 4, 3, groups=-2), Conv2d(4, 6, 3, groups=4), MaxPool2d(9, 1)):
        with pytest.raises(ValueError, match="does not take samples of shape"):
            shapes((layer,), (4, 8, 8))


def test_each_pixel_of_an_enlarged_digit_stands_so_often_in_both_directions():
    digits, x = DATASETS.get("digits"), np.arange(128.0).reshape(2, 64)
    assert isinstance(digits, Digits)
    digits.check({"enlarge": 4}, (1, 32, 32))
    large = digits.shaped(x, {"enlarge": 4})
    assert large.shape == (2, 1, 32, 32)
    for row, column in ((0, 0), (3, 4), (4, 3), (31, 31)):
        assert (large[:, 0, row, column] == x[:, 8 * (row // 4) + column // 4]).all()
    assert (digits.shaped(x, {}) == x.reshape(2, 1, 8, 8)).all()


def test_costs_of_a_known_network():
    layers = (Conv2d(1, 2, 3, padding=1), ReLU(), Flatten(), Linear(8, 3))
    model, sgd = LayeredModel(layers, (1, 2, 2)), RULE.model_copy(update={"momentum": 0.9})
    costs = model.costs(sgd)
    assert costs.parameters == 2 * 9 + 2 + 8 * 3 + 3
    assert (costs.inputs, costs.outputs, costs.activations) == (4, 3, 8 + 8 + 3)
    # Convolution: each of 4 windows holds 4 numbers of the image, for 2 channels; no gradient of
    # the image. Biases take part backwards. Linear: forwards, weights, inputs.
    convolution, rectifier, linear = 2 * 2 * 32 + 8, 2 * 8, 3 * 48 + 3
    # Three exponentials, their sum and quotients; logarithm, two differences, the batch's sum.
    assert costs.training_flops == convolution + rectifier + linear + 3 * 3 + 4
    found = step_costs(model, sgd, batch=8, layout=Layout(4), precision="fp32")
    adamw = RULE.model_copy(update={"optimiser": "adamw"})
    more = step_costs(model, adamw, batch=8, layout=Layout(4), precision="fp32")
    assert more["flops_per_step"] - found["flops_per_step"] == (10 - 4) * 47
    # One more state for each parameter, read and written.
    assert more["bytes_per_step"] - found["bytes_per_step"] == 4 * 2 * 47
    assert found["flops_per_step"] == 2 * costs.training_flops + 4 * 47
    assert found["communication_bytes_per_step"] == round(2 * 3 / 4 * 47 * 4)
    assert found["messages_per_step"] == 4
    alone = step_costs(model, sgd, batch=8, layout=Layout(1), precision="fp32")
    assert alone["communication_bytes_per_step"] == alone["messages_per_step"] == 0


def test_ranks_that_share_a_model_share_its_costs():
    model = LayeredModel((Linear(8, 4), ReLU(), Linear(4, 2)), (8,))
    whole, parts = (
        step_costs(model, RULE, batch=8, layout=layout, precision="fp32") for layout in (Layout(2), Layout(2, 2))
    )
    for name in ("flops_per_step", "bytes_per_step", "communication_bytes_per_step"):
        assert whole[name] == 2 * parts[name], name
    assert parts["messages_per_step"] == whole["messages_per_step"] == 2


class Numbers:
    """What brings nothing to a device, and draws nothing."""

    def seed(self, seed):
        pass

    def batch(self, x, y):
        return x, y


def test_ranks_share_exactly_the_single_rank_batch():
    order = np.stack([np.random.default_rng(epoch).permutation(50) for epoch in range(2)])
    data = {"x_train": np.arange(50), "y_train": np.arange(50), "x_test": None, "y_test": None, "order": order}
    whole, *parts = (
        [x for epoch in StoredBatches(Numbers(), data, 12, share) for x, _ in epoch]  # type: ignore[arg-type]
        for share in (Share(), *(Share(rank, 3) for rank in range(3)))
    )
    assert len(whole) == 2 * 4
    for expected, *shared in zip(whole, *parts, strict=True):
        assert np.array_equal(np.concatenate(shared), expected)


CLOCK = """
import json, os, sys, time
from pathlib import Path
from transect.payloads.__main__ import main
from transect.training.frameworks.numpy_ import NumpyFramework
from transect.training.strategies.single import Single

def slowly(function):
    def wrapped(*given):
        global late
        late += 1000
        return function(*given)
    return wrapped

# The clocks go on by more than any machine is slow.
late, wall, steady = 0, time.time, time.perf_counter
time.time, time.perf_counter = lambda: wall() + late, lambda: steady() + late
# Some frameworks are loaded when ranks meet, others when the model is made.
Single.join, NumpyFramework.trainer = slowly(Single.join), slowly(NumpyFramework.trainer)
out = Path(sys.argv[1])
rule = dict(batch=10, epochs=1, learning_rate=0.1, quality_target=0.5)
cell = dict(stage="train", workload="iris-mlp-ce", framework="numpy", strategy="single", batch=10)
data = dict(workload="iris-mlp-ce", seed=1, repeats=1, parameters=rule | dict(test_fraction=0.25, dataset_options={}))
(out / "data.json").write_text(json.dumps(data))
(out / "cell.json").write_text(json.dumps(dict(cell=cell, parameters=rule)))
assert main(["transect.payloads.dataset:run", "--spec", str(out / "data.json"), "--out", str(out / "data")]) == 0
os.environ["TRANSECT_STARTED_AT"] = str(time.time())
spec = ["--spec", str(out / "cell.json"), "--take", "data=" + str(out / "data"), "--out", str(out)]
main(["transect.payloads.train:run_rank", *spec])
"""


def test_neither_way_to_load_a_framework_counts_in_time_to_quality(base_python, tmp_path):
    run = warm(base_python).run("-c", CLOCK, tmp_path)
    assert run.returncode == 0, run.stderr
    facts = json.loads((tmp_path / "rank-000.json").read_text())
    assert facts["startup_s"] > 2000
    assert 0 < facts["data_to_start_s"] < 1000


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    # E. B. Wilson's formula evaluated by hand for 0, half and all of the samples.
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)],
)
def test_wilson(right, total, low, high):
    assert wilson(right, total) == pytest.approx((low, high), abs=1e-4)
