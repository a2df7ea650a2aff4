"""ONNX's operator tests: how they are made, and what becomes of their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from checkouts import ROOT, environment_python
from transect.domain.cell import Cell
from transect.onnx_models.node_tests import ARCHIVE, known_tests, unpack
from transect.onnx_models.tensors import read_tensors, tensor_types, write_tensors
from transect.planning.stage import STAGES
from transect.runtimes import RUNTIMES
from transect.runtimes._case_runs import CaseEnd
from transect.runtimes.conformance import conformance_result, judge, own_words

pytestmark = pytest.mark.env

UNPACKED = {"test_cast_FLOAT_to_FLOAT16", "test_bitcast_scalar_float32_to_int32", "test_reduce_sum_empty_set"}


STUMBLING = ROOT / "tests" / "data" / "runners" / "stumbling.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a nodetests cell."""
    folder = tmp_path_factory.mktemp("nodetests")
    python = environment_python("conformance", folder)
    done = subprocess.run(
        [python, "-m", "transect.payloads", STAGES.get("onnx-node-tests").payload, "--out", str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def unpacked(made, tmp_path_factory):
    """The tests by name, and the folder that holds their files."""
    folder = tmp_path_factory.mktemp("unpacked")
    tests = known_tests(made / ARCHIVE)
    unpack(made / ARCHIVE, (test for test in tests if test.name in UNPACKED), folder)
    return {test.name: test for test in tests}, folder


# --- preparing


def test_every_test_is_prepared_or_left_out_with_its_reason(made, unpacked):
    tests, _ = unpacked
    details = json.loads((made / "result.json").read_text())["details"]
    outside = {name: why for why, names in details["outside_contract"].items() for name in names}
    assert details["onnx_version"] == "1.23.2"
    assert details["tests"] == 1884
    assert len(tests) == details["expressible"] == details["tests"] - len(outside)
    assert tests.keys().isdisjoint(outside)
    assert outside["test_identity_sequence"] == "sequence as input or output"
    assert outside["test_identity_opt"] == "optional as input or output"
    assert outside["test_cast_FLOAT_to_FLOAT8E4M3FN"] == "float8e4m3fn as input or output"
    assert outside["test_quantizelinear_uint4"] == "uint4 as input or output"
    random = [name for name, why in outside.items() if "random" in why]
    assert sorted(name for name in random if "bernoulli" not in name) == [
        "test_training_dropout",
        "test_training_dropout_default",
        "test_training_dropout_default_mask",
        "test_training_dropout_mask",
    ]
    # These draw nothing: no training, or nothing is dropped.
    assert {"test_dropout_default", "test_training_dropout_zero_ratio"} <= tests.keys()


def tensors(unpacked, name, side):
    _, folder = unpacked
    return (read_tensors(folder / name / side, bits=True), tensor_types(folder / name / side))


def test_float16_scalars_and_empty_tensors_keep_type_and_shape(unpacked):
    results, types = tensors(unpacked, "test_cast_FLOAT_to_FLOAT16", "expected")
    assert [array.dtype for array in results.values()] == [np.float16]
    assert list(types.values()) == ["float16"]
    scalar, _ = tensors(unpacked, "test_bitcast_scalar_float32_to_int32", "expected")
    assert [(array.shape, array.dtype.name) for array in scalar.values()] == [((), "int32")]
    empty, _ = tensors(unpacked, "test_reduce_sum_empty_set", "inputs")
    assert empty["data"].shape == (2, 0, 4)


def test_outputs_that_cannot_be_read_are_wrong(tmp_path, unpacked):
    tests, _ = unpacked
    write_tensors(tmp_path / "expected", {"y": np.float32([1])})
    verdict = judge(tests["test_abs"], CaseEnd(status="ok"), tmp_path)
    assert verdict.outcome == "wrong"
    assert verdict.reason.startswith("outputs cannot be read: ") and "no such file" in verdict.reason


def test_a_message_is_told_without_what_languages_put_around_it():
    sentence = "Unsupported model IR version: 14, max supported IR version: 13"
    place = (
        "/onnxruntime_src/onnxruntime/core/graph/model.cc:192 onnxruntime::Model::Model(onnx::"
        "ModelProto&&, const std::unordered_map<std::string, int (*)(int)>&) "
    )
    loading = "Load model from /tmp/test_abs/model.onnx failed:"
    web = "Can't create a session. ERROR_CODE: 1, ERROR_MESSAGE: "
    native = "Fail: [ONNXRuntimeError] : 1 : FAIL : "
    for before in ("", native, web, "…/test_abs/model.onnx: "):
        assert own_words(f"{before}{loading}{place}{sentence}\n") == sentence
        assert own_words(f"{before}{sentence}") == sentence
    assert own_words("no kernel") == "no kernel"
    assert own_words(" \n") == "no reason was given"


# --- running


class Stumbling:
    """The runtime that is tests/data/runners/stumbling.py."""

    environment = "onnxruntime"
    uses_exporter = True
    providers = ("cpu",)

    def library(self, python: str) -> None:
        return None

    def command(self, python: str, arguments: list[str]) -> list[str]:
        return [python, str(STUMBLING), *arguments]


def test_a_result_counts_by_opset_and_names_what_did_not_pass(made, tmp_path, monkeypatch):
    monkeypatch.setattr(RUNTIMES, "get", lambda name, where="": Stumbling())
    cell = Cell.of(stage="conformance", runtime="stumbling", provider="cpu")
    found = conformance_result(cell, made, tmp_path, sys.executable, only="test_clip_*min*")
    verdicts = json.loads((tmp_path / "verdicts.json").read_text())
    wrong = {verdict["name"] for verdict in verdicts if verdict["outcome"] == "wrong"}
    assert wrong == {verdict["name"] for verdict in verdicts if verdict["name"].endswith("expanded")}
    rate, *counts = (metric["value"] for metric in found["metrics"])
    assert (found["status"], rate) == ("ok", 1 - len(wrong) / len(verdicts))
    assert counts == [len(verdicts) - len(wrong), len(wrong), 0, 0, 0, 0]
    assert found["details"]["opsets"] == {"13": {"pass": counts[0], "wrong": counts[1]}}
    listed = [name for group in found["details"]["not_passed"] for name in group["tests"]]
    assert sorted(listed) == sorted(wrong)
    assert not (tmp_path / "work").exists()
