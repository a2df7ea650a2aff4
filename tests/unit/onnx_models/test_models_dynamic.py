"""Models with dynamic ranges, really converted and run: in each size of batch the right outputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_cells import plan_models, run_infer, run_payload
from transect.onnx_models.facts import facts_of_model
from transect.onnx_models.tensors import read_tensors
from transect.runtimes.options import session_options
from transect.runtimes.outputs import judge

# Of 128 rows: one at a time, with a partial last batch, more than there are.
SIZES = [1, 48, 160]
DYNAMIC = "int8-dynamic"


@pytest.fixture(scope="module")
def folders(torch_python: str, model_cell: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `fp32`, `fp16` and `int8-dynamic` of one model."""
    folder = tmp_path_factory.mktemp("dynamic")
    shutil.copytree(model_cell("mlp", "torchscript")[0], folder / "fp32")
    for precision in ("fp16", DYNAMIC):
        cell = {"stage": "convert", "workload": "mlp", "exporter": "torchscript"}
        spec = {"cell": cell | {"precision": precision}, "batches": SIZES}
        code, _, stderr = run_payload(torch_python, folder / precision, spec, model=folder / "fp32")
        assert code == 0, stderr
    return folder


def infer(python: str, folder: Path, batch: int, runtime: str = "python") -> Any:
    """Run an infer cell on the converted model in `folder`; return (code, result, stderr)."""
    cell = {
        "stage": "infer",
        "workload": "mlp",
        "exporter": "torchscript",
        "precision": DYNAMIC,
        "provider": "cpu",
        "batch": batch,
        "runtime": runtime,
    }
    limits = {"warmup": 2, "min_runs": 20, "max_seconds": 0.05}
    spec = {"cell": cell, "limits": limits, "options": session_options("equal", 1, "cpu", {})}
    return run_infer(folder.with_name(f"infer-{folder.name}"), spec, folder, python)


def test_each_size_of_batch_has_outputs_and_tolerances_of_its_own(folders):
    details = json.loads((folders / DYNAMIC / "result.json").read_text())["details"]
    assert list(details["by_batch"]) == [str(size) for size in SIZES]
    assert facts_of_model(folders / DYNAMIC)["by_batch"] is True
    assert "by_batch" not in facts_of_model(folders / "fp16")
    outputs = {}
    for size in SIZES:
        folder = folders / DYNAMIC / f"batch-{size}"
        facts, of_size = facts_of_model(folder), details["by_batch"][str(size)]
        assert facts["mean_tolerance"] == of_size["mean_tolerance"]
        assert facts["tolerance"] == of_size["tolerance"]
        assert of_size["mean_spread"]["output"] <= facts["mean_tolerance"]["output"]
        # Otherwise the float32 file's outputs would pass.
        assert facts["mean_tolerance"]["output"] <= 0.45 * of_size["mean_distance"]["output"]
        outputs[size] = read_tensors(folder / "expected")["output"]
    assert (outputs[1] != outputs[48]).any() and (outputs[48] != outputs[160]).any()
    whole = read_tensors(folders / DYNAMIC / "expected")["output"]
    np.testing.assert_array_equal(outputs[160], whole)


@pytest.mark.parametrize("size", SIZES)
def test_outputs_of_other_precisions_and_of_other_batches_are_wrong(folders, size):
    right = folders / DYNAMIC / f"batch-{size}"
    expected, facts = read_tensors(right / "expected"), facts_of_model(right)

    def wrong(found: Path) -> list[str]:
        limits = facts["tolerance"], facts["mean_tolerance"]
        return judge(read_tensors(found / "expected"), expected, *limits).wrong

    assert wrong(right) == []
    others = [folders / DYNAMIC / f"batch-{another}" for another in SIZES if another != size]
    for folder in (folders / "fp32", folders / "fp16", *others):
        assert wrong(folder), folder


@pytest.mark.parametrize("runtime", ["python", "python-iobinding"])
@pytest.mark.parametrize("batch", SIZES)
def test_a_runtime_of_the_right_file_passes_and_of_the_float32_file_does_not(
    torch_python, folders, tmp_path, batch, runtime
):
    copy = shutil.copytree(folders / DYNAMIC, tmp_path / "copy")
    code, result, stderr = infer(torch_python, copy, batch, runtime)
    assert (code, result["status"]) == (0, "ok"), (result, stderr)
    assert result["details"]["mean_tolerance"].keys() == {"output"}
    for precision in ("fp32", "fp16"):
        shutil.copy(folders / precision / "model.onnx", copy / "model.onnx")
        _, result, _ = infer(torch_python, copy, batch, runtime)
        assert (result["status"], result["cause"]) == ("failed", "wrong-result")
        assert "on average" in result["message"]


def test_a_batch_that_the_conversion_was_not_told_of_is_bad_input(torch_python, folders, tmp_path):
    code, result, _ = infer(torch_python, shutil.copytree(folders / DYNAMIC, tmp_path / "one"), 8)
    assert code != 0 and "batch-1, batch-160, batch-48" in result["message"]


@pytest.mark.env
def test_a_conversion_is_told_of_the_sizes_of_batches_that_are_inferred(tmp_path):
    made = plan_models(
        tmp_path,
        "models: {models: [mlp], exporters: [dynamo]}\n"
        "infer: {grids: [{workloads: [mlp], runtimes: [python, c], batches: [32, 1], "
        "precisions: [int8-dynamic, int8-static]}, {workloads: [mlp], runtimes: [python], "
        "batches: [8], precisions: [int8-dynamic]}]}\n",
    )
    batches = {planned.cell.precision: planned.spec.get("batches") for planned in made.stage("convert").values()}
    assert batches == {"int8-dynamic": [1, 8, 32], "int8-static": None}
