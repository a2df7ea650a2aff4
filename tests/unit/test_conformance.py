"""ONNX's operator tests: how they are made, how outputs are compared, what the command says."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from checkouts import ROOT, environment_python
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.onnx_models.agreement import difference
from transect.onnx_models.node_tests import ARCHIVE, known_tests, unpack
from transect.onnx_models.tensors import read_tensors, tensor_types, write_tensors
from transect.planning.expand import reason_to_skip
from transect.planning.stage import STAGES
from transect.runtimes import RUNTIMES
from transect.runtimes._case_runs import CaseEnd
from transect.runtimes._messages import said
from transect.runtimes.conformance import conformance_result, judge

UNPACKED = {
    "test_string_concat", "test_cast_FLOAT_to_BFLOAT16", "test_cast_FLOAT_to_FLOAT16",
    "test_bitcast_scalar_float32_to_int32", "test_reduce_sum_empty_set",
}  # fmt: skip
STUMBLING = ROOT / "tests" / "data" / "runners" / "stumbling.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a nodetests cell."""
    folder = tmp_path_factory.mktemp("nodetests")
    python = environment_python("conformance", folder)
    done = subprocess.run(
        [python, "-m", "transect.stages.nodetests.worker", "--out", str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
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
        "test_training_dropout", "test_training_dropout_default",
        "test_training_dropout_default_mask", "test_training_dropout_mask",
    ]  # fmt: skip
    # These draw nothing: no training, or nothing is dropped.
    assert {"test_dropout_default", "test_training_dropout_zero_ratio"} <= tests.keys()


def tensors(unpacked, name, side):
    _, folder = unpacked
    return (
        read_tensors(folder / name / side, bits=True),
        tensor_types(folder / name / side),
    )


def test_strings_arrive_as_they_are(unpacked):
    values, types = tensors(unpacked, "test_string_concat", "inputs")
    assert types == {"x": "string", "y": "string"}
    given = values["x"].tolist(), values["y"].tolist()
    results, _ = tensors(unpacked, "test_string_concat", "expected")
    assert results["result"].tolist() == [a + b for a, b in zip(*given, strict=True)]


def test_bfloat16_is_the_nearest_to_the_float32(unpacked):
    values, _ = tensors(unpacked, "test_cast_FLOAT_to_BFLOAT16", "inputs")
    results, types = tensors(unpacked, "test_cast_FLOAT_to_BFLOAT16", "expected")
    assert list(types.values()) == ["bfloat16"]
    (given,), (found,) = values.values(), results.values()
    finite = np.isfinite(given)
    bits = given[finite].view(np.uint32)
    # Half to even: a bit more where what is cut off is more than half, or half of an odd one.
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    assert finite.sum() > 5
    assert found[finite].tolist() == rounded.tolist()


def test_float16_scalars_and_empty_tensors_keep_type_and_shape(unpacked):
    results, types = tensors(unpacked, "test_cast_FLOAT_to_FLOAT16", "expected")
    assert [array.dtype for array in results.values()] == [np.float16]
    assert list(types.values()) == ["float16"]
    scalar, _ = tensors(unpacked, "test_bitcast_scalar_float32_to_int32", "expected")
    assert [(array.shape, array.dtype.name) for array in scalar.values()] == [((), "int32")]
    empty, _ = tensors(unpacked, "test_reduce_sum_empty_set", "inputs")
    assert empty["data"].shape == (2, 0, 4)


def test_a_test_without_the_default_domain_has_the_other_one_s_name(unpacked):
    tests, _ = unpacked
    assert tests["test_ai_onnx_ml_label_encoder_string_int"].opset == "ai.onnx.ml 4"
    assert tests["test_abs"].opset == "13"
    assert (tests["test_abs"].rtol, tests["test_abs"].atol) == (1e-3, 1e-7)


def test_what_is_no_archive_is_told(tmp_path):
    (tmp_path / ARCHIVE).write_text("no archive")
    with pytest.raises(BadInput, match=r"nodetests\.tar: no archive of node tests"):
        known_tests(tmp_path / ARCHIVE)


# --- comparing

NAN, INF = float("nan"), float("inf")


def compared(folder, given, expected):
    """Compare two arrays, or two folders' worth of them by name."""
    for name, side in (("given", given), ("expected", expected)):
        arrays = side if isinstance(side, dict) else {"y": side}
        write_tensors(folder / name, arrays)
    return difference(folder / "given", folder / "expected", rtol=1e-3, atol=1e-7)


SAME = {
    "within rtol": (np.float32([1.0009, -2.0]), np.float32([1.0, -2.0])),
    "within atol": (np.float32([5e-8]), np.float32([0.0])),
    "nan for nan": (np.float64([NAN, 1]), np.float64([NAN, 1])),
    "infinity for infinity": (np.float16([INF, -INF]), np.float16([INF, -INF])),
    "integers": (np.uint64([2**64 - 1]), np.uint64([2**64 - 1])),
    "texts": (np.array(["a", "é"], object), np.array(["a", "é"], object)),
    "nothing": (np.zeros((2, 0), np.int8), np.zeros((2, 0), np.int8)),
    "scalars": (np.float32(3), np.float32(3)),
}
OTHER = {
    "beyond rtol": (np.float32([1.0011]), np.float32([1.0]), "first at 0: 1.0011, expected 1"),
    "beyond atol": (np.float32([2e-7]), np.float32([0.0]), "first at 0: 2e-07, expected 0"),
    "nan for a number": (np.float32([NAN]), np.float32([1.0]), "first at 0: nan, expected 1"),
    "a number for nan": (np.float32([1.0]), np.float32([NAN]), "first at 0: 1, expected nan"),
    "another infinity": (np.float32([INF]), np.float32([-INF]), "inf, expected -inf"),
    "integers are exact": (np.int64([2**53 + 1]), np.int64([2**53]), "differs in 1 of 1"),
    "bools are exact": (np.array([True]), np.array([False]), "True, expected False"),
    "texts are exact": (np.array(["a"], object), np.array(["A"], object), "'a', expected 'A'"),
    "type": (np.float64([1.0]), np.float32([1.0]), "'y' is float64, expected float32"),
    "shape": (np.float32([[1.0]]), np.float32([1.0]), "'y' has shape [1, 1], expected [1]"),
    "name": ({"z": np.float32([1])}, {"y": np.float32([1])}, "outputs are z, expected y"),
    "number": ({}, {"y": np.float32([1])}, "outputs are none, expected y"),
    "order": ({"b": np.int8(1), "a": np.int8(1)}, {"a": np.int8(1), "b": np.int8(1)},
              "outputs are b, a, expected a, b"),
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_what_counts_as_the_same(tmp_path, what):
    assert compared(tmp_path, *SAME[what]) is None


@pytest.mark.parametrize("what", OTHER)
def test_what_counts_as_another(tmp_path, what):
    given, expected, told = OTHER[what]
    assert told in compared(tmp_path, given, expected)


def bfloat16(folder, *bits):
    """A folder with a bfloat16 tensor of these bits."""
    write_tensors(folder, {"y": np.array(bits, np.uint16)})
    header = folder / "header.json"
    header.write_text(header.read_text().replace("uint16", "bfloat16"))
    return folder


def test_a_bfloat16_may_be_two_steps_off_and_no_more(tmp_path):
    one = bfloat16(tmp_path / "one", 0x3F80)
    near = bfloat16(tmp_path / "near", 0x3F82)
    far = bfloat16(tmp_path / "far", 0x3F83)
    assert difference(near, one, rtol=1e-3, atol=1e-7) is None
    assert "1.023438, expected 1" in difference(far, one, rtol=1e-3, atol=1e-7)
    integers = tmp_path / "integers"
    write_tensors(integers, {"y": np.array([0x3F80], np.uint16)})
    assert "is uint16, expected bfloat16" in difference(integers, one, rtol=1e-3, atol=1e-7)


def test_an_output_that_is_no_tensor_is_another(tmp_path):
    write_tensors(tmp_path / "expected", {"y": np.float32([1])})
    (tmp_path / "given").mkdir()
    kind = {"tensors": [{"name": "y", "kind": "sequence(float32)"}]}
    (tmp_path / "given" / "header.json").write_text(json.dumps(kind))
    told = difference(tmp_path / "given", tmp_path / "expected", rtol=0, atol=0)
    assert told == "output 'y' is sequence(float32), expected float32"


BROKEN = {
    "no header": (None, "no such file"),
    "half a header": ('{"tensors": [', "does not describe tensors"),
    "no file": ('{"tensors": [{"name": "y", "dtype": "float32", "shape": [1], "file": "no.bin"}]}',
                "no such file"),
    "other size": ('{"tensors": [{"name": "y", "dtype": "float32", "shape": [3], "file": "y.bin"}]}',
                   "holds 4 bytes"),
    "below zero": ('{"tensors": [{"name": "y", "dtype": "float32", "shape": [-1], "file": "y.bin"}]}',
                   "shape [-1]"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_outputs_that_cannot_be_read_are_wrong(tmp_path, unpacked, what):
    header, told = BROKEN[what]
    tests, _ = unpacked
    write_tensors(tmp_path / "expected", {"y": np.float32([1])})
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "y.bin").write_bytes(b"1234")
    if header is not None:
        (tmp_path / "outputs" / "header.json").write_text(header)
    verdict = judge(tests["test_abs"], CaseEnd(status="ok"), tmp_path)
    assert verdict.outcome == "wrong"
    assert verdict.reason.startswith("outputs cannot be read: ") and told in verdict.reason


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
        assert said(f"{before}{loading}{place}{sentence}\n") == sentence
        assert said(f"{before}{sentence}") == sentence
    assert said("no kernel") == "no kernel"
    assert said(" \n") == "no reason was given"


# --- running


class Stumbling:
    """The runtime that is tests/data/runners/stumbling.py."""

    environment = "onnxruntime"
    uses_exporter = True

    def command(self, python: str, arguments: list[str]) -> list[str]:
        return [python, str(STUMBLING), *arguments]


def test_a_result_counts_by_opset_and_names_what_did_not_pass(made, tmp_path, monkeypatch):
    monkeypatch.setattr(RUNTIMES, "get", lambda name, where="": Stumbling())
    cell = Cell.of(stage="conformance", runtime="stumbling", provider="cpu")
    found = conformance_result(cell, made, tmp_path, sys.executable, only="test_clip_*min*")
    verdicts = json.loads((tmp_path / "verdicts.json").read_text())
    wrong = {one["name"] for one in verdicts if one["outcome"] == "wrong"}
    assert wrong == {one["name"] for one in verdicts if one["name"].endswith("expanded")}
    rate, *counts = (metric["value"] for metric in found["metrics"])
    assert (found["status"], rate) == ("ok", 1 - len(wrong) / len(verdicts))
    assert counts == [len(verdicts) - len(wrong), len(wrong), 0, 0, 0, 0]
    assert found["details"]["opsets"] == {"13": {"pass": counts[0], "wrong": counts[1]}}
    listed = [name for group in found["details"]["not_passed"] for name in group["tests"]]
    assert sorted(listed) == sorted(wrong)
    assert not (tmp_path / "work").exists()


def test_no_test_of_that_name(made, tmp_path, monkeypatch):
    monkeypatch.setattr(RUNTIMES, "get", lambda name, where="": Stumbling())
    cell = Cell.of(stage="conformance", runtime="stumbling", provider="cpu")
    with pytest.raises(BadInput, match="no test of ONNX is called 'test_conv'"):
        conformance_result(cell, made, tmp_path, sys.executable, only="test_conv")


def test_every_runtime_can_be_asked_whether_it_runs_here():
    stage = STAGES.get("conformance")
    for name in RUNTIMES:
        if RUNTIMES.get(name).uses_exporter:
            cell = Cell.of(stage="conformance", runtime=name, provider="cpu")
            reason = reason_to_skip(cell)
            assert reason is None or reason
            assert stage.environment(cell)


def transect(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "transect", "conformance", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_the_command_runs_tests_and_what_onnx_runtime_refuses_is_no_error(tmp_path):
    done = transect("python", "--only", "test_cast*FLOAT*", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["opsets"] == {"25": {"pass": 16}, "28": {"failed": 8}}
    (refused,) = told["not_passed"]
    assert refused["reason"].startswith("Unsupported model IR version")
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"verdicts.json", "runner.jsonl", "runner.log", "tests"}


def test_the_command_shows_wrong_outputs_and_ends_with_1():
    done = transect("python", "--only", "test_dft*")
    assert done.returncode == 1, done.stderr
    assert "differs in" in done.stdout and "test_dft_inverse" in done.stdout
    assert "0 of 10 tests pass; ONNX 1.23.2 has 1884" in done.stdout


BAD = {
    "unknown runtime": (["pyhton"], 2, "did you mean 'python'"),
    "no onnx": (["torch-eager"], 2, "runtime 'torch-eager' executes no ONNX models"),
    "unknown provider": (["python", "--provider", "tpu"], 3, "'tpu'"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_run_is_told_in_one_line(what):
    arguments, code, told = BAD[what]
    done = transect(*arguments)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
