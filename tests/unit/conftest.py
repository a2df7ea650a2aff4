"""What several test modules of this folder make once."""

from __future__ import annotations

from pathlib import Path

import pytest
from train_runs import make_steps


@pytest.fixture(scope="session")
def train_steps(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `step`, `dropout`, `data`, `order.bin` and `expected.json`: train_steps.py."""
    return make_steps(torch_python, tmp_path_factory.mktemp("train"))
