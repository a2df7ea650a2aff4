"""The tolerance of dynamic ranges, from numbers: a flip passes, the float32 file does not."""

from __future__ import annotations

import numpy as np
import pytest

from transect.domain.errors import BadInput
from transect.onnx_models.dynamic_tolerance import dynamic_tolerance, jiggled
from transect.onnx_models.facts import of_batch, write_facts
from transect.runtimes.outputs import judge

ROWS = 128
RNG = np.random.default_rng(3)
RIGHT = RNG.normal(size=(ROWS, 10)).astype(np.float32)
FLOAT32 = (RIGHT + RNG.normal(scale=0.02, size=RIGHT.shape)).astype(np.float32)
FAR = float(np.abs(FLOAT32 - RIGHT).max())


def flipped(rows: int, by: float) -> np.ndarray:
    """Return outputs in which one element of each of some rows is off."""
    found = RIGHT.copy()
    found[:rows, 4] += np.float32(by)
    return found


def passes(found: np.ndarray, others: list[np.ndarray]) -> bool:
    rule = dynamic_tolerance(RIGHT, others, FLOAT32)
    tolerances = {"y": rule.tolerance}, {"y": rule.mean_tolerance}
    return not judge({"y": found}, {"y": RIGHT}, *tolerances).wrong


@pytest.mark.parametrize("others", [[RIGHT], [RIGHT, flipped(1, FAR)], [flipped(12, FAR)]])
def test_flips_of_one_step_pass_and_the_float32_file_does_not(others: list[np.ndarray]) -> None:
    """Whatever was measured: nothing, or flips that reach as far as the conversion itself."""
    assert passes(RIGHT * np.float32(1 + 2**-22), others)
    assert passes(flipped(1, FAR), others)
    assert not passes(flipped(1, 2.1 * FAR), others)
    assert not passes(FLOAT32, others)
    # float16's outputs are the float32 file's, a little off.
    assert not passes(FLOAT32.astype(np.float16).astype(np.float32), others)


def test_executions_that_differ_like_float32_are_named() -> None:
    assert dynamic_tolerance(RIGHT, [RIGHT], FLOAT32).tolerance_from == "one step"
    assert dynamic_tolerance(RIGHT, [flipped(12, FAR)], FLOAT32).tolerance_from == "executions"
    assert dynamic_tolerance(RIGHT, [flipped(60, FAR)], FLOAT32).tolerance_from == "distance to float32"
    rule = dynamic_tolerance(RIGHT, [FLOAT32], FLOAT32)
    assert rule.tolerance_from == "executions that differ like float32"
    assert rule.mean_tolerance == 1.5 * rule.mean_spread


def test_jiggled_inputs_differ_by_some_roundings_and_integers_not_at_all() -> None:
    given = {"x": RIGHT, "n": np.arange(4)}
    moved = jiggled(given, 0)
    apart = np.abs(moved["x"] / RIGHT - 1)
    assert moved["x"].dtype == np.float32 and 2**-23 <= apart.max() <= 2**-21
    assert (moved["n"] == given["n"]).all()
    assert (jiggled(given, 0)["x"] == moved["x"]).all() and (jiggled(given, 1)["x"] != moved["x"]).any()


def test_outputs_of_a_batch_that_was_not_computed_are_asked_for_with_those_that_were(tmp_path) -> None:
    facts = {"tolerance": {"y": 1.0}, "batched": True, "costs": None}
    write_facts(tmp_path, **facts)
    assert of_batch(tmp_path, 8) == tmp_path
    write_facts(tmp_path, **facts, by_batch=True)
    (tmp_path / "batch-32").mkdir()
    assert of_batch(tmp_path, 32) == tmp_path / "batch-32"
    with pytest.raises(BadInput, match=r"batch-8: not there; .* computed for batch-32"):
        of_batch(tmp_path, 8)
