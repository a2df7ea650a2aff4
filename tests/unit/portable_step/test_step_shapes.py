"""The portable step's decompositions over drawn shapes, and drawn layers through ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from step_worker_client import StepWorker, step_worker

BOUND = 1e-12


@pytest.fixture(scope="module")
def worker(torch_python: str) -> Iterator[StepWorker]:
    with step_worker(torch_python) as made:
        yield made


SEEDS = st.integers(0, 99)
BATCHES = st.sampled_from([1, 2, 5])


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    spatial = draw(st.integers(1, 3))
    axes = range(spatial)
    kernel = [draw(st.integers(1, 4)) for _ in axes]
    stride = [draw(st.integers(1, 3)) for _ in axes]
    dilation = [draw(st.integers(1, 3)) for _ in axes]
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    transposed = draw(st.booleans())
    if transposed:
        size = [draw(st.integers(1, 4)) for _ in axes]
        # Something must be left after the padding is cut off.
        padding = [draw(st.integers(0, ((n - 1) * s + r) // 2)) for n, s, r in zip(size, stride, reach, strict=True)]
    else:
        padding = [draw(st.integers(0, 3)) for _ in axes]
        least = [max(1, r + 1 - 2 * p) for r, p in zip(reach, padding, strict=True)]
        size = [draw(st.integers(n, n + 5)) for n in least]
    longest = [max(s, d) for s, d in zip(stride, dilation, strict=True)]
    return {
        "kernel": kernel,
        "stride": stride,
        "dilation": dilation,
        "padding": padding,
        "size": size,
        "transposed": transposed,
        "groups": draw(st.integers(1, 3)),
        "channels": draw(st.integers(1, 3)),
        "filters": draw(st.integers(1, 3)),
        "batch": draw(BATCHES),
        "seed": draw(SEEDS),
        "output_padding": [draw(st.integers(0, n - 1)) for n in longest],
    }


@given(shape=convolutions())
@settings(max_examples=50)
def test_convolution_gradients(worker: StepWorker, shape: dict[str, Any]) -> None:
    assert worker("convolution", shape) < BOUND


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    dilation = [draw(st.integers(1, 2)) for _ in range(2)]
    least = [max(1, d * (k - 1) + 1 - 2 * p) for d, k, p in zip(dilation, kernel, padding, strict=True)]
    return {
        "kernel": kernel,
        "padding": padding,
        "dilation": dilation,
        "stride": [draw(st.integers(1, 5)) for _ in range(2)],
        "size": [draw(st.integers(n, n + 6)) for n in least],
        "ceil_mode": draw(st.booleans()),
        "count_include_pad": draw(st.booleans()),
        "divisor": draw(st.sampled_from([None, 1, 3])),
        "batch": draw(BATCHES),
        "seed": draw(SEEDS),
    }


def sees_padding_alone(shape: dict[str, Any]) -> bool:
    """Tell whether a max pooling has a window without an element: it has no meaning."""
    keys = ("size", "kernel", "stride", "padding", "dilation")
    for size, k, s, p, d in zip(*(shape[key] for key in keys), strict=True):
        last = size + 2 * p - d * (k - 1) - 1 + (s - 1 if shape["ceil_mode"] else 0)
        # In ceil mode too, no window begins behind the axis.
        starts = [start for start in range(-p, last - p + 1, s) if start < size]
        if any(all(not 0 <= start + i * d < size for i in range(k)) for start in starts):
            return True
    return False


@given(shape=pools().filter(lambda shape: not sees_padding_alone(shape)))
@settings(max_examples=35)
def test_max_pool_gradients(worker: StepWorker, shape: dict[str, Any]) -> None:
    assert worker("max_pool", shape) < BOUND


@given(shape=pools())
@settings(max_examples=35)
def test_max_pool_is_refused_where_a_window_sees_padding_alone(worker: StepWorker, shape: dict[str, Any]) -> None:
    message = worker("refused_max_pool", shape)
    assert ("nothing but padding" in message) == sees_padding_alone(shape), message


@given(shape=pools())
@settings(max_examples=35)
def test_average_pool_and_gradients(worker: StepWorker, shape: dict[str, Any]) -> None:
    assert worker("avg_pool", shape) < BOUND


PLANES = st.lists(st.integers(1, 9), min_size=2, max_size=2)


@given(size=PLANES, outputs=PLANES, batch=BATCHES, seed=SEEDS)
@settings(max_examples=20)
def test_adaptive_pools_and_gradients(
    worker: StepWorker, size: list[int], outputs: list[int], batch: int, seed: int
) -> None:
    shape = {"size": size, "outputs": outputs, "batch": batch, "seed": seed}
    assert worker("adaptive_pool", shape) < BOUND


@given(
    heads=st.integers(1, 3),
    groups=st.integers(1, 3),
    queries=st.integers(1, 5),
    keys=st.integers(1, 5),
    width=st.integers(1, 4),
    batch=BATCHES,
    seed=SEEDS,
    mask=st.sampled_from([None, "bool", "float", "causal"]),
)
@settings(max_examples=20)
def test_attention_and_gradients(worker: StepWorker, **shape: Any) -> None:
    assert worker("attention", shape) < BOUND


def test_zero_times_infinity_is_not_made_of_a_gradient_that_relu_keeps_back(worker: StepWorker) -> None:
    found = worker("root_of_relu")
    assert found["float64"] < 1e-10
    assert found["excess"] <= 1


def test_a_sign_costs_a_length_no_digits(worker: StepWorker) -> None:
    # Float32 would be wrong by 1e-8.
    assert worker("negative_length") < 1e-12


@pytest.mark.parametrize("strange", [5, -1])
def test_a_target_that_is_no_class_spoils_the_loss(worker: StepWorker, strange: int) -> None:
    assert worker("loss_of", [0, 4, strange]) == "nan"
    assert float(worker("loss_of", [0, 4, -100])) > 0


def test_the_norm_of_a_float16_gradient_does_not_overflow(worker: StepWorker) -> None:
    # Each square is 90,000, and float16 ends at 65,504.
    assert worker("clipped", [300.0, -400.0], 5.0) == pytest.approx([3.0, -4.0], rel=2e-3)
