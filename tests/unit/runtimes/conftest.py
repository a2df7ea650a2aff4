"""What several test modules of this folder make once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_texts import make_bundle
from runner_program import Program, make_models
from train_runs import make_steps, runner_python

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
def runner_models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models for the runners in other languages than Python: runner_models.py."""
    return make_models(torch_python, tmp_path_factory.mktemp("runner-models"))


@pytest.fixture(scope="module")
def trainer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The name of a runner that trains, to be given by `indirect`, and its interpreter."""
    name: str = request.param
    return name, runner_python(name, tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest, runner_models: Path) -> Program:
    """The runner of a language, to be named by `indirect`."""
    return Program.of(request.param, runner_models)


@pytest.fixture(scope="session")
def digits(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `weights.npz`, `data.npz` and the export `torchscript` of `digits-cnn`: read it only."""
    folder = tmp_path_factory.mktemp("digits")
    code, _, stderr = export(torch_python, folder, "digits-cnn", "torchscript")
    assert code == 0, stderr
    return folder
