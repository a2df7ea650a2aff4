"""Real models by every exporter, in its environment: what it writes computes what it should."""

from __future__ import annotations

import json

import numpy as np
import pytest

from onnx_cells import metrics
from transect.domain.errors import BadInput
from transect.onnx_models.comparison import differences
from transect.onnx_models.exporters import EXPORTERS
from transect.onnx_models.models import MODELS
from transect.onnx_models.tensors import NoTensor, read_tensors

OFFERED = [
    (model, exporter)
    for exporter in EXPORTERS.names()
    for model in MODELS.names()
    if EXPORTERS.get(exporter).framework in MODELS.get(model).frameworks
]
# What these versions cannot do, and words of the reason.
REFUSED = {
    ("transformer-encoder", "keras"): "Erfc",
    ("several-inputs-outputs", "keras"): "Bitcast",
    ("transformer-encoder", "keras-torch"): "Failed to export a node",
}
# Minutes each, for one more instance of what resnet20 shows.
LARGE = {("resnet50", exporter) for exporter in EXPORTERS.names()} - {("resnet50", "torchscript")}


@pytest.mark.parametrize(("model", "exporter"), [p for p in OFFERED if p not in LARGE])
@pytest.mark.env
def test_a_model_computes_in_onnx_what_it_does_in_its_framework(model_cell, model, exporter):
    folder, result = model_cell(model, exporter)
    if words := REFUSED.get((model, exporter)):
        assert (result["status"], result["cause"]) == ("failed", "unsupported")
        assert words in result["message"] and not (folder / "expected").exists()
        return
    assert result["status"] == "ok", result["message"]
    details = result["details"]
    inputs, expected = read_tensors(folder / "inputs"), read_tensors(folder / "expected")
    assert list(inputs) == [end["name"] for end in details["input"]]
    assert list(expected) == [end["name"] for end in details["output"]]
    assert read_tensors(folder / "calibration").keys() == inputs.keys()
    tensors = {name for name, value in expected.items() if isinstance(value, np.ndarray)}
    assert details["tolerance"].keys() == tensors
    assert "batch" not in json.loads((folder / "inputs" / "header.json").read_text())
    if details["batched"]:
        rows = {len(value) for value in (*inputs.values(), *expected.values())}
        assert len(rows) == 1 and rows.pop() >= (8 if model == "resnet50" else 128)
    values = metrics(result)
    assert values["max_abs_difference"] <= max(details["tolerance"].values())
    assert values["model_bytes"] == (folder / "model.onnx").stat().st_size


@pytest.mark.env
def test_frameworks_compute_the_same_of_the_same_numbers(model_cell):
    """Weights and inputs are one draw: an export that took others would pass its own check."""
    pairs = {
        "lstm": ["torchscript", "keras", "mxnet"],
        "mlp": ["torchscript", "mxnet"],
        "several-inputs-outputs": ["torchscript", "tf2onnx"],
    }
    for model, exporters in pairs.items():
        found = []
        for exporter in exporters:
            folder, _ = model_cell(model, exporter)
            arrays = read_tensors(folder / "expected").values()
            found.append(max((array for array in arrays if array.dtype.kind == "f"), key=np.size))
        for output in found[1:]:
            assert np.abs(output - found[0]).max() < 1e-5 * np.abs(found[0]).max()


@pytest.mark.env
def test_a_model_that_the_framework_does_not_make_is_skipped(model_cell):
    _, result = model_cell("strings", "onnx")
    assert (result["status"], result["cause"]) == ("skipped", "unsupported")
    assert "sklearn" in result["message"]


def test_differences_are_told_by_output_and_by_kind():
    wanted = {"a": np.array([1.0, 2.0]), "b": np.array(["x", "y"], object), "m": NoTensor("map")}
    found = {"a": np.array([1.0, 2.5]), "b": np.array(["x", "z"], object), "m": NoTensor("map(x)")}
    assert differences(found, wanted) == {"a": 0.5, "b": 0.5}
    assert differences(found | {"a": np.array([np.nan, 2.0])}, wanted)["a"] == np.inf
    for bad in (
        {"a": found["a"]},
        found | {"a": np.zeros(3)},
        found | {"m": np.zeros(1)},
        found | {"m": NoTensor("seq")},
    ):
        with pytest.raises(ValueError, match=r"output '[abm]' is"):
            differences(bad, wanted)


@pytest.mark.parametrize(("given", "expected"), [("float32", "float64"), ("int32", "int64"), ("int8", "uint8")])
def test_another_type_passes_only_where_it_is_named_as_a_stand_in(given, expected):
    found, wanted = {"y": np.ones(3, given)}, {"y": np.ones(3, expected)}
    for stand_ins in ({}, {given: expected}, {expected: "float16"}):
        with pytest.raises(BadInput, match=rf"'y' is {given} \[3\], expected {expected} \[3\]"):
            differences(found, wanted, stand_ins=stand_ins)
    assert differences(found, wanted, stand_ins={expected: given}) == {"y": 0.0}
