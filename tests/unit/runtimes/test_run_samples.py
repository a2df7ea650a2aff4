"""A runner's raw times as series: of Run alone, and of bind, Run and copy together."""

from __future__ import annotations

import numpy as np
import pytest

from transect.domain.record import INLINE_SAMPLES
from transect.runtimes.times import load_samples, run_samples, run_values


def raw_times(amount: int) -> dict[str, list[int]]:
    return {"run_ns": [1000 + n for n in range(amount)], "bind_ns": [100] * amount, "copy_ns": [10] * amount}


def test_few_times_stand_in_the_result(tmp_path) -> None:
    found = run_samples(raw_times(3), tmp_path)
    assert {name: entry["count"] for name, entry in found.items()} == {"latency": 3, "end_to_end_time": 3}
    assert found["latency"]["values"] == pytest.approx([1e-6, 1.001e-6, 1.002e-6])
    assert found["end_to_end_time"]["values"] == pytest.approx([1.11e-6, 1.111e-6, 1.112e-6])
    assert not (tmp_path / "samples.npz").exists()


def test_many_times_lie_in_one_file_with_both_series(tmp_path) -> None:
    amount = INLINE_SAMPLES + 1
    found = run_samples(raw_times(amount), tmp_path)
    with np.load(tmp_path / "samples.npz") as file:
        series = {name: file[entry["key"]] for name, entry in found.items()}
    assert [len(array) for array in series.values()] == [amount, amount]
    np.testing.assert_allclose(series["end_to_end_time"] - series["latency"], 110e-9)
    values = run_values(raw_times(amount) | {"session_ns": 5}, batch=4)  # type: ignore[operator]
    assert values["end_to_end_time"] == pytest.approx(np.median(series["end_to_end_time"]))


def test_a_load_has_its_own_series(tmp_path) -> None:
    np.array([0, 50], "<i8").tofile(tmp_path / "arrivals.bin")
    found = load_samples({"end_ns": [30, 90]}, tmp_path)
    assert found["load_latency"]["values"] == pytest.approx([30e-9, 40e-9])
