"""How far a graph's results may be from PyTorch's: what rounding moves, and where it decides otherwise, what that changes."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from transect.domain.errors import BadInput
from transect.portable_step.verification import SLACK, _Check

pytestmark = pytest.mark.fast

WANT = {"next.w": np.array([1.0, -0.5], np.float32)}


def check() -> Any:
    manifest = SimpleNamespace(state=(SimpleNamespace(next="next.w", role="parameter"),))
    return _Check(eager=None, manifest=manifest, values={}, runtime="a runtime", sessions={})  # type: ignore[arg-type]


def compare(checked: Any, off: float, smooth: float, jump: float) -> None:
    """Compare results that are off by so much, where a few roundings move them by `smooth` each, many by `jump`."""

    def moved(times: float) -> Mapping[str, float]:
        return {"next.w": jump if times == SLACK else times * smooth}

    found = {"next.w": (WANT["next.w"] + np.float32(off)).astype(np.float32)}
    checked._compare("step", found, WANT, {"next.w": "next.w"}, moved, "a batch of 4 rows")


def test_what_rounding_moves_is_no_error_and_needs_no_word() -> None:
    checked = check()
    compare(checked, off=1e-5, smooth=1e-7, jump=0.0)
    assert checked.jumps() == [] and not checked.vague


def test_a_result_that_jumps_is_told_with_how_far_it_is_off() -> None:
    checked = check()
    compare(checked, off=0.05, smooth=1e-7, jump=0.04)
    assert "1 results differ" in checked.jumps()[0] and "w by 0.05 of its size" in checked.jumps()[0]


@pytest.mark.parametrize("jump", [0.02, 0.0])
def test_more_than_it_jumps_is_an_error(jump: float) -> None:
    with pytest.raises(BadInput, match=r"step.onnx: .* a batch of 4 rows: w is"):
        compare(check(), off=0.05, smooth=1e-7, jump=jump)


def test_a_function_without_jumps_is_held_as_sharply_as_before() -> None:
    # What is smooth moves by SLACK times as much when it is rounded by so much.
    with pytest.raises(BadInput):
        compare(check(), off=1e-3, smooth=1e-7, jump=SLACK * 1e-7)
