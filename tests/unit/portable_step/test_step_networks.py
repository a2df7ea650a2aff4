"""What the portable training step covers, network by network: gradients and paths against PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from step_coverage import CASES
from step_worker_client import NETWORKS, StepWorker, check_case, step_worker
from thirds import third


@pytest.fixture(scope="module")
def worker(torch_python: str) -> Iterator[StepWorker]:
    with step_worker(torch_python) as made:
        yield made


# Minutes; its blocks are those of the small one.
LARGE = "resnet50"
NAMES = [name for name, case in CASES.items() if case.group in NETWORKS and name != LARGE]


@pytest.mark.parametrize("name", [*third(NAMES), pytest.param(LARGE, marks=pytest.mark.exhaustive)])
def test_gradients_and_path_are_those_of_pytorch(worker: StepWorker, name: str) -> None:
    check_case(worker, name)
