"""What people write around layers of torch.nn: exported, and compared with PyTorch by the export itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from step_families import CASES
from step_worker_client import StepWorker, step_worker
from thirds import third


@pytest.fixture(scope="module")
def worker(torch_python: str) -> Iterator[StepWorker]:
    with step_worker(torch_python) as made:
        yield made


# The other libraries' are run by `python -m step_families`, where these are installed.
NAMES = [name for name, case in CASES.items() if case.library == "torch"]


@pytest.mark.parametrize("name", third([name for name in NAMES if not CASES[name].refused]))
def test_a_step_is_exported_and_agrees_with_pytorch(worker: StepWorker, name: str) -> None:
    found = worker("family", name)
    assert found["ok"], found["message"]


@pytest.mark.parametrize("name", [name for name in NAMES if CASES[name].refused])
def test_what_is_refused_says_why(worker: StepWorker, name: str) -> None:
    found = worker("family", name)
    assert not found["ok"]
    assert CASES[name].refused in found["message"]
