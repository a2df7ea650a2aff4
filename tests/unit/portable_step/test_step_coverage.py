"""What the portable training step covers, layer by layer: gradients and paths against PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from step_coverage import CASES, UNCOVERED
from step_worker_client import NETWORKS, StepWorker, check_case, step_worker
from thirds import third


@pytest.fixture(scope="module")
def worker(torch_python: str) -> Iterator[StepWorker]:
    with step_worker(torch_python) as made:
        yield made


LAYERS = [name for name, case in CASES.items() if case.group not in NETWORKS]


# Each case exports three graphs, and takes seconds.
@pytest.mark.parametrize("name", third(LAYERS))
def test_gradients_and_path_are_those_of_pytorch(worker: StepWorker, name: str) -> None:
    check_case(worker, name)


@pytest.mark.parametrize(
    "operator", ["aten.convolution_backward.default", "aten.max_pool2d_with_indices_backward.default"]
)
def test_a_gradient_that_is_off_by_a_thousandth_is_found(worker: StepWorker, operator: str) -> None:
    found = worker("spoilt", "digits-cnn", operator, 1.001)
    assert found["float64"] > 1e-5
    assert found["excess"] > 1
    assert found["path"] > 1


@pytest.mark.parametrize("name", UNCOVERED)
def test_what_is_not_covered_is_refused_by_name(worker: StepWorker, name: str) -> None:
    message = worker("refused", name)
    assert message != "no error"
    assert UNCOVERED[name][2] in message
