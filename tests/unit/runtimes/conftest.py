"""What several test modules of this folder make once."""

from __future__ import annotations

from pathlib import Path

import native_program
import pytest
import runner_program
from hostile_texts import make_bundle
from train_runs import make_steps

from onnx_cells import export


@pytest.fixture(scope="session")
def train_steps(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `step`, `dropout`, `data`, `order.bin` and `expected.json`: train_steps.py."""
    return make_steps(torch_python, tmp_path_factory.mktemp("train"))


@pytest.fixture(scope="session")
def bundle(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a classifier of hostile texts: predict_models.py."""
    return make_bundle(torch_python, tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="session")
def native_models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models for C, C++, Rust and Go: native_models.py."""
    return native_program.make_models(torch_python, tmp_path_factory.mktemp("native-models"))


@pytest.fixture(scope="session")
def javascript_models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models for Node.js and the browser: javascript_models.py."""
    return runner_program.make_models(torch_python, tmp_path_factory.mktemp("javascript-models"))


@pytest.fixture(scope="session")
def java_models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models for Java: java_models.py."""
    folder = tmp_path_factory.mktemp("java-models")
    return runner_program.make_models(torch_python, folder, "java")


@pytest.fixture(scope="session")
def digits(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `weights.npz`, `data.npz` and the export `torchscript` of `digits-cnn`: read it only."""
    folder = tmp_path_factory.mktemp("digits")
    code, _, stderr = export(torch_python, folder, "digits-cnn", "torchscript")
    assert code == 0, stderr
    return folder
