"""Whether a retraining's losses and final weights are PyTorch's: what is wrong is seen, and said."""

from __future__ import annotations

import json

import numpy as np
import pytest

from transect.domain.errors import BadInput
from transect.payloads.export_training_step import row_order
from transect.payloads.retrain_verdict import Path64, judge, reported_losses
from transect.payloads.step_path import retraining_rates

LOSS = np.array([1.0, 0.8, 0.6, 0.5])
WEIGHTS = {"0.weight": np.array([[3.0, 4.0]])}


def path(loss=LOSS, tolerance=0.01):
    return Path64(loss=np.array(loss), tolerance=np.full(len(loss), tolerance), weights=WEIGHTS, weights_tolerance=1e-3)


def state(scale=1.0, dtype=np.float32):
    return {"model.0.weight": (WEIGHTS["0.weight"] * scale).astype(dtype), "step": np.array(4)}


def test_what_follows_the_path_is_right_and_its_distance_is_told():
    verdict = judge(LOSS + np.array([0, 0.005, 0, -0.001]), path(), state(1 + 1e-4))
    assert verdict.fault == ""
    assert verdict.ratios["equality_ratio"] == pytest.approx(0.5)
    assert verdict.ratios["weights_deviation"] == pytest.approx(1e-4, rel=1e-2)
    assert verdict.ratios["weights_equality_ratio"] == pytest.approx(0.1, rel=1e-2)


# Losses, the tolerance of the path, weights, and what is wrong with them.
FAULTS = {
    "a loss": (
        LOSS + np.array([0, 0, 0.02, 0.5]),
        0.01,
        1.0,
        "the loss is 0.62 at step 2, PyTorch's in float64 is 0.6, and the tolerance is 0.01",
    ),
    "an infinite loss": (np.array([1.0, 0.8, np.inf, 0.5]), 0.01, 1.0, "the loss is inf"),
    "other weights": (LOSS, 0.01, 1.5, "the final weights are 0.5 of their size"),
    "weights that are no numbers": (LOSS, 0.01, np.nan, "the final weights"),
    "a last digit, without any tolerance": (LOSS + 1e-12, 0.0, 1.0, "the loss is"),
    "nothing, without any tolerance": (LOSS, 0.0, 1.0, ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_named_with_its_numbers(name):
    losses, tolerance, scale, expected = FAULTS[name]
    fault = judge(losses, path(tolerance=tolerance), state(scale)).fault
    assert expected in fault and bool(fault) == bool(expected)


def test_a_state_without_weights_is_no_result():
    with pytest.raises(BadInput, match="no tensor"):
        judge(LOSS, path(), {"step": np.array(4)})


def test_steps_that_nobody_tells_are_not_held_to_anything():
    losses = reported_losses([(2, [0.6, 0.5])], 4)
    assert np.isnan(losses[:2]).all()
    assert judge(losses, path(), state()).fault == ""
    assert "step 3" in judge(reported_losses([(2, [0.6, 0.9])], 4), path(), state()).fault
    # Where no loss is told at all the final weights still are.
    nothing = judge(reported_losses([], 4), path(), state(2.0))
    assert "equality_ratio" not in nothing.ratios and "the final weights" in nothing.fault


def test_more_losses_than_steps_are_no_record():
    for parts in ([(3, [1.0, 2.0])], [(-1, [1.0])]):
        with pytest.raises(BadInput, match="losses reported from step"):
            reported_losses(parts, 4)


def test_going_on_where_pytorch_diverges_is_another_computation():
    ends = path([1.0, 5.0, np.nan, np.nan])
    assert ends.diverges and not path().diverges
    assert judge(np.array([1.0, 5.0, 6.0, 7.0]), ends, state()).fault == (
        "it trained on where PyTorch's loss in float64 is not finite"
    )
    # Until it diverged it was right.
    assert judge(np.array([1.0, 5.0, np.nan, np.nan]), ends).fault == ""


RULES = {
    "the old rate": ({"factor": 1.0, "warmup": 0.0, "end": None}, [0.2] * 5),
    "ten times": ({"factor": 10.0, "warmup": 0.0, "end": None}, [2.0] * 5),
    "a warm-up": ({"factor": 1.0, "warmup": 0.4, "end": None}, [0.1, 0.2, 0.2, 0.2, 0.2]),
    "a cosine": ({"factor": 1.0, "warmup": 0.0, "end": 0.0}, [0.2, 0.1 * (1 + 2**-0.5), 0.1, 0.1 * (1 - 2**-0.5), 0.0]),
    "both": ({"factor": 1.0, "warmup": 0.4, "end": 0.5}, [0.1, 0.2, 0.2, 0.15, 0.1]),
}


@pytest.mark.parametrize("name", RULES)
def test_rates_are_multiples_of_the_workloads_own(name):
    rule, wanted = RULES[name]
    assert retraining_rates(0.2, rule, 5) == pytest.approx(wanted)
    assert len(json.dumps(retraining_rates(0.2, rule, 1).tolist())) > 2


def test_an_order_goes_through_all_rows_before_any_comes_again():
    order = row_order(10, 25, seed=3, repeat=1)
    assert sorted(order[:10]) == sorted(order[10:20]) == list(range(10))
    assert order.dtype == np.dtype("<i8") and len(order) == 25
    assert order.tolist() == row_order(10, 25, seed=3, repeat=1).tolist()
    assert order.tolist() != row_order(10, 25, seed=3, repeat=2).tolist()
    # A longer one begins alike.
    assert row_order(10, 40, seed=3, repeat=1)[:25].tolist() == order.tolist()
