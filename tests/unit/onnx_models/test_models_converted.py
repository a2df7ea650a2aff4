"""Models in lower precisions: real conversions of real files, and as they are planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_cells import export, metrics, plan_models, run_payload
from transect.domain.axes.export import PRECISIONS
from transect.domain.cell import Cell
from transect.onnx_models.facts import facts_of_model
from transect.onnx_models.tensors import read_tensors
from transect.planning.expand import reason_to_skip
from transect.runtimes.outputs import judge

TRAIN = "train: {grids: [{workloads: [digits-cnn], frameworks: [torch], strategies: [single]}]}\n"


def convert(python: str, folder: Path, out: Path, precision: str, **more: Path) -> Any:
    """Convert the model in `folder`; return (code, result, stderr)."""
    cell = {"stage": "convert", "workload": "mlp", "exporter": "dynamo", "precision": precision}
    return run_payload(python, out, {"cell": cell}, model=folder, **more)


@pytest.mark.parametrize(
    ("precision", "most", "size"), [("fp16", 1e-2, 0.6), ("int8-dynamic", 0.1, 0.5), ("int8-static", 0.1, 0.5)]
)
@pytest.mark.parametrize(("model", "exporter"), [("mlp", "dynamo"), ("resnet20", "torchscript")])
def test_a_converted_model_is_smaller_and_near(
    torch_python, model_cell, tmp_path, model, exporter, precision, most, size
):
    folder, made = model_cell(model, exporter)
    out = tmp_path / "out"
    code, result, stderr = convert(torch_python, folder, out, precision)
    assert (code, result["status"]) == (0, "ok"), stderr
    values, details = metrics(result), result["details"]
    assert values["model_bytes"] == (out / "model.onnx").stat().st_size
    assert values["model_bytes"] < size * details["model_bytes_before"]
    expected = read_tensors(out / "expected")["output"]
    before = read_tensors(folder / "expected")["output"]
    apart = np.abs(expected - before).max()
    assert 0 < apart <= most * np.abs(before).max()
    assert apart <= values["max_abs_difference"] + 1e-5
    tolerance, source = details["tolerance"]["output"], details["tolerance_from"]["output"]
    assert tolerance > 0 and details["spread"]["output"] <= tolerance
    # Far from the float32 file's outputs, or the record says why not; of dynamic ranges on average.
    dynamic = precision == "int8-dynamic"
    kind = "mean_" if dynamic else ""
    limit, far = details[f"{kind}tolerance"]["output"], details[f"{kind}distance"]["output"]
    assert (limit <= 0.45 * far) == (source != "executions that differ like float32")
    facts, keys = facts_of_model(out), ("tolerance", "batched", "costs")
    dynamic_facts = {"mean_tolerance": details["mean_tolerance"], "by_batch": True} if dynamic else {}
    assert facts == {key: details[key] for key in keys} | dynamic_facts
    assert "accuracy" not in values and details["batched"] is True
    # The float32 file's own tolerance tells the two apart: it is no check that all would pass.
    assert values["max_abs_difference"] > made["details"]["tolerance"]["output"]


def test_outputs_of_another_precision_s_file_are_a_wrong_result(torch_python, model_cell, tmp_path):
    """Except where executions of the one file reach as far, which the record then says."""
    folder, _ = model_cell("mlp", "torchscript")
    outputs, details = {"fp32": read_tensors(folder / "expected")}, {}
    for precision in PRECISIONS:
        out = tmp_path / precision
        code, result, stderr = convert(torch_python, folder, out, precision)
        assert code == 0, stderr
        outputs[precision], details[precision] = read_tensors(out / "expected"), result["details"]
    for precision, facts in details.items():
        limits = facts["tolerance"], facts.get("mean_tolerance")
        assert judge(outputs[precision], outputs[precision], *limits).wrong == []
        if facts["tolerance_from"]["output"] == "executions that differ like float32":
            assert facts["spread"]["output"] > 0.45 * facts["distance"]["output"]
            assert precision == "int8-static"
            continue
        for wrong_precision in outputs.keys() - {precision}:
            assert judge(outputs[wrong_precision], outputs[precision], *limits).wrong, wrong_precision


def test_a_trained_model_is_scored_before_and_after(torch_python, tmp_path):
    """Weights are drawn here, and labels what the float32 model says: its accuracy is 1."""
    assert export(torch_python, tmp_path, "digits-cnn", "torchscript")[0] == 0
    folder, out = tmp_path / "torchscript", tmp_path / "out"
    with np.load(tmp_path / "data.npz") as file:
        arrays = dict(file)
    labels = tmp_path / "labels"
    data = {"data": tmp_path}
    code, result, stderr = convert(torch_python, folder, labels, "fp16", **data)
    assert code == 0, stderr
    arrays["y_test"] = read_tensors(labels / "expected")["output"].argmax(1)
    np.savez(tmp_path / "data.npz", **arrays)
    _, result, _ = convert(torch_python, folder, out, "int8-static", **data)
    values, details = metrics(result), result["details"]
    assert details["accuracy_before"] == 1.0 and details["rows_scored"] == 50
    assert values["accuracy_loss"] == pytest.approx(1.0 - values["accuracy"])
    assert values["accuracy"] == values["top1_agreement"]
    assert details["calibration_rows"] == 50


def test_what_cannot_be_converted_is_skipped_and_says_so(torch_python, model_cell, tmp_path):
    folder, _ = model_cell("identity-1k", "onnx")
    _, result, _ = convert(torch_python, folder, tmp_path / "out", "int8-static")
    assert (result["status"], result["cause"]) == ("skipped", "unsupported")
    assert "nothing to convert to int8-static" in result["message"]


def test_conversions_take_made_models_and_trained_workloads(tmp_path):
    section = "convert: {workloads: [mlp, digits-cnn], exporters: [dynamo], precisions: [fp16]}"
    made = plan_models(tmp_path, f"{TRAIN}{section}")
    taken = {
        planned.cell.workload: {role: stage for role, (stage, _) in planned.inputs.items()}
        for planned in made.stage("convert").values()
    }
    assert taken == {"mlp": {"model": "generated-model"}, "digits-cnn": {"model": "export", "data": "dataset"}}
    assert len(made.stage("generated-model")) == len(made.stage("export")) == 1


def test_conversions_of_what_is_not_offered_are_skipped_with_the_reason():
    def reason(**axes: str) -> str | None:
        return reason_to_skip(Cell.of(stage="convert", **axes))

    assert reason(workload="mlp", exporter="mxnet", precision="fp16") is None
    assert "none in onnx" in str(reason(workload="mlp", exporter="onnx", precision="fp16"))
    trained = reason(workload="digits-cnn", exporter="keras", precision="fp16")
    assert "trained models are exported from torch" in str(trained)
    assert reason(workload="digits-cnn", exporter="dynamo", precision="fp16") is None
    assert "not to bf16" in str(reason(workload="mlp", exporter="dynamo", precision="bf16"))
