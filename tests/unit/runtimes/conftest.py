"""What several test modules of this folder make once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_texts import make_bundle
from train_runs import make_steps


@pytest.fixture(scope="session")
def train_steps(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `step`, `dropout`, `data`, `order.bin` and `expected.json`: train_steps.py."""
    return make_steps(torch_python, tmp_path_factory.mktemp("train"))


@pytest.fixture(scope="session")
def bundle(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a classifier of hostile texts: predict_models.py."""
    return make_bundle(torch_python, tmp_path_factory.mktemp("bundle"))
