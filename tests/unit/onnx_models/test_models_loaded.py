"""Round trips: real files into other frameworks, and as they are planned."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from onnx_cells import metrics, plan_models, run_payload
from transect.domain.files import sha256_file
from transect.onnx_models.loaders import LOADERS
from transect.onnx_models.tensors import read_tensors, write_tensors


@pytest.fixture(scope="module")
def made(model_cell: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model cells, a folder each."""
    folder = tmp_path_factory.mktemp("made")
    for model, exporter in (
        ("cnn", "torchscript"),
        ("several-inputs-outputs", "torchscript"),
        ("strings", "sklearn"),
        ("control-flow", "torchscript"),
        ("identity-1", "onnx"),
    ):
        cell, result = model_cell(model, exporter)
        assert result["status"] == "ok", result["message"]
        shutil.copytree(cell, folder / model)
    return folder


def load(loader: str, model: Path, out: Path) -> Any:
    """Run a round trip; return (code, result, stderr)."""
    python = environment_python(LOADERS.get(loader).environment, out.parent)
    cell = {"stage": "roundtrip", "workload": model.name, "exporter": "any", "loader": loader}
    return run_payload(python, out, {"cell": cell}, model=model)


@pytest.mark.parametrize("loader", LOADERS.names())
@pytest.mark.env
def test_a_framework_that_loads_a_file_computes_the_same(made, tmp_path, loader):
    models = ["identity-1", "several-inputs-outputs"]
    if LOADERS.get(loader).rows is None:
        models.append("cnn")
    for model in models:
        before = sha256_file(made / model / "model.onnx")
        code, result, stderr = load(loader, made / model, tmp_path / model)
        assert (code, result["status"]) == (0, "ok"), result["message"] or stderr
        assert metrics(result)["max_abs_difference"] <= max(result["details"]["tolerance"].values())
        assert sha256_file(made / model / "model.onnx") == before


@pytest.mark.parametrize("loader", sorted(set(LOADERS.names()) - {"onnx-reference"}))
@pytest.mark.env
def test_a_framework_that_cannot_load_a_file_says_why(made, tmp_path, loader):
    """None of them has texts; ONNX's own evaluator does."""
    code, result, stderr = load(loader, made / "strings", tmp_path / "out")
    assert (code, result["status"], result["cause"]) == (0, "failed", "unsupported"), stderr
    assert result["message"] and not result["metrics"]


@pytest.mark.env
def test_outputs_beyond_the_tolerance_are_a_wrong_result(made, tmp_path):
    model = tmp_path / "cnn"
    shutil.copytree(made / "cnn", model)
    expected = read_tensors(model / "expected")
    write_tensors(model / "expected", {n: np.asarray(x) + 1e-3 for n, x in expected.items()})
    _, result, _ = load("onnx-reference", model, tmp_path / "out")
    assert (result["status"], result["cause"]) == ("failed", "wrong-result")


def test_round_trips_are_planned_with_their_files(tmp_path):
    lists = "models: [mlp, strings], exporters: [dynamo, sklearn], loaders: [opencv, onnx2torch]"
    found = plan_models(tmp_path, f"roundtrip: {{{lists}}}")
    cells = list(found.stage("roundtrip").values())
    assert len(cells) == 8 and len(found.stage("generated-model")) == 4
    for planned in cells:
        stage, cell_id = planned.inputs["model"]
        taken = found.stage(stage)[cell_id].cell
        assert (taken.workload, taken.exporter) == (planned.cell.workload, planned.cell.exporter)
