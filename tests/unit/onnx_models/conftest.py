"""What several test modules of this folder make once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnx_cells import make_model

ModelCell = Callable[[str, str], tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="session")
def model_cell(tmp_path_factory: pytest.TempPathFactory) -> ModelCell:
    """Return what gives the folder of a model by an exporter, to be read only, and the result."""

    @functools.cache
    def made(model: str, exporter: str) -> tuple[Path, dict[str, Any]]:
        folder = tmp_path_factory.mktemp(f"{model}-{exporter}")
        code, result, stderr = make_model(folder, model, exporter)
        assert code == 0, stderr
        return folder, result

    return made
