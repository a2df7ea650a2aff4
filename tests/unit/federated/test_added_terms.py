"""What methods add to gradients, by engines of whole turns: beside numpy in float64, and nothing where it is nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from federations import extended
from test_engines import CASES, computed, expected, task_of, turns_of


@pytest.mark.parametrize("precision, near", [("fp64", 1e-12), ("fp32", 2e-4)])
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_added_to_gradients_is_added(case, engine, precision, near):
    task = task_of(case, engine, precision)
    turns = extended(turns_of(task))
    weights, losses = computed(task, turns)
    followed, mean = expected(task, turns)
    np.testing.assert_allclose(weights, followed, rtol=0, atol=near)
    np.testing.assert_allclose(losses, mean, rtol=0, atol=near)
    assert (np.abs(weights - computed(task, turns_of(task))[0]).max(axis=1) > 1e-3).all()


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("case", CASES)
def test_no_pull_and_no_correction_is_a_plain_turn_in_every_bit(case, engine):
    task = task_of(case, engine, "fp32")
    plain = turns_of(task)
    nothing = np.zeros_like(plain[0].given)
    # Beside clients that do have one.
    turns = [replace(turn, mu=0.0, correction=nothing) if turn.number % 2 else turn for turn in extended(plain)]
    found, right = computed(task, turns), computed(task, plain)
    for mine, theirs in zip(found, right, strict=True):
        assert mine[1::2].tobytes() == theirs[1::2].tobytes()
        assert (mine[::2] != theirs[::2]).any()
