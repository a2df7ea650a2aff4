"""Real exports, in the environment of torch."""

from __future__ import annotations

import subprocess
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from onnx_cells import ROWS, SOURCE, export, make_inputs, metrics, run_payload
from transect.domain.metrics import metric
from transect.onnx_models.tensors import read_tensors
from transect.training.costs import run_costs
from transect.training.layers import weight_shapes
from transect.training.operations import prediction_operations
from transect.training.workloads import WORKLOADS, model_of


@pytest.mark.parametrize(
    ("exporter", "workload"),
    [
        *product(["torchscript", "dynamo"], ["digits-cnn", "iris-mlp", "iris-mlp-ce", "images-resnet20"]),
        ("torchscript", "images-inception"),
        ("torchscript", "images-mobilenet"),
    ],
)
def test_export_equals_the_framework(torch_python: str, tmp_path: Path, workload: str, exporter: str) -> None:
    code, result, stderr = export(torch_python, tmp_path, workload, exporter)
    assert (code, result["status"]) == (0, "ok"), stderr
    values, details = metrics(result), result["details"]
    assert all(metric(name) for name in values)
    assert values["max_abs_difference"] <= details["tolerance"] < 1e-3
    assert values["top1_agreement"] == 1.0
    assert values["operators"] == sum(details["operators_by_type"].values())
    assert details["dynamic_batch"] is True
    assert details["batches_compared"] == [1, 7, ROWS]
    assert [end["name"] for end in (*details["input"], *details["output"])] == ["input", "output"]
    folder = tmp_path / exporter
    assert sorted(f.name for f in folder.glob("model*")) == ["model.onnx"]
    assert values["model_bytes"] == (folder / "model.onnx").stat().st_size
    assert len(read_tensors(folder / "inputs")["input"]) == ROWS
    assert len(read_tensors(folder / "expected")["output"]) == ROWS
    assert result["libraries"]["torch"]
    # Counted from the graph, and from the layers by the same rules.
    model = WORKLOADS.get(workload)
    # Exporters fold a batch norm into the convolution before it: two arrays become its bias.
    folded = sum(prod(w.shape) for w in weight_shapes(model.layers) if "running_mean" in w.name)
    assert details["costs"] == {
        "flops_per_sample": prediction_operations(model.layers, model.sample),
        "weight_bytes": 4 * (model.model.costs(model.defaults).parameters - folded),
        "end_bytes_per_sample": run_costs(model_of(model), model.defaults, 1)["bytes_per_run"]
        - 4 * model.model.costs(model.defaults).parameters,
        "operators_without_rule": [],
    }


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_texts_length_stays_open(torch_python: str, tmp_path: Path, exporter: str) -> None:
    code, result, stderr = export(torch_python, tmp_path, "tickets-transformer", exporter)
    assert (code, result["status"]) == (0, "ok"), (result["message"], stderr)
    details = result["details"]
    assert details["input"] == [{"name": "input", "dtype": "int64", "shape": ["batch", "length"]}]
    assert details["shapes_compared"] == [[ROWS, 24], [ROWS, 1]]
    assert details["worst_case"] is None
    assert metrics(result)["max_abs_difference"] <= details["tolerance"] < 1e-4
    assert read_tensors(tmp_path / exporter / "inputs")["input"].dtype == np.int64
    # The graph's own way of normalising takes a few more operations than the model asks for.
    model = model_of(WORKLOADS.get("tickets-transformer"))
    asked = model.costs(WORKLOADS.get("tickets-transformer").defaults)
    assert 0.95 < details["costs"]["flops_per_sample"] / asked.prediction_flops < 1.2
    # Of its table of words one row; biases that are all 0 are kept once.
    assert 0.9 < details["costs"]["weight_bytes"] / (4 * asked.prediction_weights) < 1.1
    assert details["costs"]["operators_without_rule"] == []


def test_weights_that_do_not_fit_fail_with_their_name(torch_python: str, tmp_path: Path) -> None:
    _, data = make_inputs(tmp_path, "iris-mlp-ce")
    folder = tmp_path / "other"
    folder.mkdir()
    np.savez(folder / "weights.npz", wrong=np.zeros(3))
    spec = {
        "cell": {"stage": "export", "workload": "iris-mlp-ce", "framework": "torch", "exporter": "torchscript"},
        "parameters": {},
    }
    code, result, stderr = run_payload(torch_python, tmp_path / "bad", spec, weights=folder, data=data)
    assert (code, result["status"], result["cause"]) == (1, "failed", "crash")
    assert result["message"].startswith("ValueError: weights do not fit the model")
    assert "'wrong'" in result["message"]
    assert "Traceback" in stderr


_CHECKS = """
import sys, numpy as np, torch
from pathlib import Path
from transect.onnx_models.exporters import EXPORTERS, Source
from transect.onnx_models.tolerance import output_tolerance
from transect.payloads.export import run_onnx
from transect.runtimes.outputs import judge
from transect.training.frameworks._torch_modules import build_module, load_weights
from transect.training.workloads import WORKLOADS, model_of

model = model_of(WORKLOADS.get("digits-cnn"))
layers = model.layers
weights = dict(np.load(sys.argv[1]))
x = np.load(sys.argv[2] + "/data.npz")["x_test"].astype(np.float32)
module = load_weights(build_module(layers).eval(), weights, torch.float32).requires_grad_(False)
with torch.inference_mode():
    expected = module(torch.from_numpy(x)).numpy()
rule = output_tolerance(model, module, x, expected)
assert 0 < rule.framework_error < rule.tolerance <= rule.worst_case, rule
assert rule.longest_accumulation == 144, rule
path = Path(sys.argv[3])
EXPORTERS.get("torchscript").export(Source(model=module, examples={"input": x[:2]}), path)
found = run_onnx(path, x, 7)

def within(other):
    return not judge({"y": found}, {"y": other}, rule.tolerance).wrong

assert within(expected)

def outputs(changed):
    other = load_weights(build_module(layers).eval(), changed, torch.float32)
    with torch.inference_mode():
        return other(torch.from_numpy(x)).numpy()

half = {n: w.astype(np.float16).astype(np.float32) for n, w in weights.items()}
assert not within(outputs(half)), "fp16 weights pass for fp32"
moved = {n: w.copy() for n, w in weights.items()}
moved["3.weight"].flat[5] += 1e-2
assert not within(outputs(moved)), "a changed weight passes"
"""


def test_tolerance_lets_fp32_pass_and_nothing_coarser(torch_python: str, tmp_path: Path) -> None:
    weights, data = make_inputs(tmp_path, "digits-cnn")
    done = subprocess.run(
        [torch_python, "-c", _CHECKS, str(weights), str(data), str(tmp_path / "model.onnx")],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
