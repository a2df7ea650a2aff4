"""The Java runner on real models: what is its own, beside what all runners are tested for."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runner_program import Program

from factories import infer_cell
from transect.onnx_models.tensors import NoTensor, write_tensors
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes import java as java_runtime

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9


@pytest.fixture(scope="module")
def program(java_models: Path) -> Program:
    return Program.of("java", java_models)


def test_rows_are_run_in_batches_the_partial_one_included(program: Program, tmp_path: Path) -> None:
    before = time.monotonic_ns()
    run = program.latency(tmp_path, "linear", {"x": X}, batch=3)
    after = time.monotonic_ns()
    assert run.code == 0, run.stderr
    weight = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
    assert run.outputs()["y"] == pytest.approx(np.maximum(X @ weight, 0), abs=1e-5)
    record = run.record
    assert (record["runner"], record["status"], record["mode"]) == ("java", "ok", "latency")
    assert record["outputs"] == {"header": str(tmp_path / "outputs" / "header.json"), "rows": 7}
    assert len(record["run_ns"]) == len(record["bind_ns"]) == len(record["copy_ns"]) == 20
    assert all(part > 0 for key in ("run_ns", "bind_ns", "copy_ns") for part in record[key])
    assert record["run_includes"] == []
    assert record["language_version"].startswith("Java ")
    assert record["peak_memory_bytes"] > 1 << 20
    assert "-XX:+UseSerialGC" in record["language_options"]["jvm_flags"]
    assert record["language_options"]["collections_while_timed"] >= 0
    # The same clock as this process's, which is CLOCK_MONOTONIC.
    assert before < record["first_result_ns"] < after


def test_library_of_the_wheel_is_the_one_that_runs(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "identity", {"x": X})
    files = RUNTIMES.get("java").files(program.python)
    assert Path(run.record["library_file"]) == files[1].resolve()
    assert "onnxruntime/capi/libonnxruntime.so.1.29.0" in run.record["library_file"]
    assert all(file.exists() for file in files)


def test_measurement_ends_when_the_interval_is_narrow_or_the_time_is_up(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    more = ("--min-runs", "50", "--max-seconds", "0.2")
    record = program.start(tmp_path, *program.paths(tmp_path, "identity"), *more).record
    # By the arithmetic of the runners in Python.
    monkeypatch.syspath_prepend(str(RUNNERS / "python"))
    narrow = importlib.import_module("latency").interval_is_narrow(record["run_ns"])
    for name in ("latency", "contract", "arguments", "tensors"):
        sys.modules.pop(name, None)
    assert len(record["run_ns"]) >= 50
    assert record["stop_reason"] == ("interval-reached" if narrow else "time-limit")


@pytest.mark.parametrize(
    ("model", "value"),
    [
        ("identity-float16", np.array([[1.5, -0.25]], np.float16)),
        ("identity-double", np.array([[1 / 3, -1e300]])),
        ("identity-int8", np.array([[-128, 127]], np.int8)),
        ("identity-int16", np.array([[-32768, 5]], np.int16)),
        ("identity-uint8", np.array([[255, 0]], np.uint8)),
        ("identity-bool", np.array([[True, False]])),
        ("scalar", np.array(2.5, np.float32)),
        ("identity", np.zeros((0, 3), np.float32)),
    ],
)
def test_numbers_come_out_as_they_went_in(program: Program, tmp_path: Path, model: str, value: np.ndarray) -> None:
    run = program.latency(tmp_path, model, {"x": value})
    assert run.code == 0, run.stderr
    found = run.outputs()["y"]
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype) == (value.shape, value.dtype)
    assert found.tobytes() == value.tobytes()
    assert run.record["outputs"]["rows"] is None


def test_bfloat16_keeps_its_bits(program: Program, tmp_path: Path) -> None:
    bits = np.array([[0x3F80, 0x4049]], np.uint16)
    header = write_tensors(tmp_path / "inputs", {"x": bits})
    header.write_text(header.read_text().replace("uint16", "bfloat16"))
    run = program.start(tmp_path, *program.paths(tmp_path, "identity-bfloat16"))
    assert run.code == 0, run.stderr
    assert (tmp_path / "outputs" / "output-0.bin").read_bytes() == bits.tobytes()
    told = json.loads((tmp_path / "outputs" / "header.json").read_text())["tensors"][0]
    assert (told["dtype"], told["shape"]) == ("bfloat16", [1, 2])


def test_several_inputs_and_outputs_of_other_types(program: Program, tmp_path: Path) -> None:
    numbers = np.array([[1, 2], [3, 70000], [5, 6]])
    texts, flags = np.array(["a", "", "größer 日本"], object), np.array([True, False, True])
    run = program.latency(tmp_path, "mixed", {"b": flags, "i": numbers, "s": texts}, batch=2)
    assert run.code == 0, run.stderr
    found = run.outputs()
    for name, dtype in (("u16", "u2"), ("u32", "u4"), ("u64", "u8"), ("i32", "i4"), ("f64", "f8")):
        assert np.array_equal(found[name], numbers.astype(dtype)), name
    assert np.array_equal(found["t"], texts)
    assert np.array_equal(found["c"], ~flags)


def test_empty_tensor_of_strings(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "identity-string", {"x": np.zeros((0, 2), object)})
    assert run.code == 0, run.stderr
    assert run.outputs()["y"].shape == (0, 2)  # type: ignore[union-attr]


def test_what_is_no_tensor_has_a_kind(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "sequence", {"x": X})
    assert run.code == 0, run.stderr
    found = run.outputs()["y"]
    assert isinstance(found, NoTensor)
    assert "Sequence" in found.kind
    assert not (tmp_path / "outputs" / "output-0.bin").exists()


def test_options_are_those_that_onnx_runtime_says_it_has(program: Program, tmp_path: Path) -> None:
    options = {
        "intra_op_num_threads": 2,
        "inter_op_num_threads": 3,
        "execution_mode": "parallel",
        "graph_optimization_level": "basic",
        "enable_cpu_mem_arena": False,
        "session.intra_op.allow_spinning": "0",
        "session.dynamic_block_base": None,
        "provider_options": {"some": "thing"},
    }
    profile = ("--profile", tmp_path / "profile")
    run = program.latency(tmp_path, "linear", {"x": X}, *profile, options=options)
    assert run.code == 0, run.stderr
    told = next(line for line in run.stderr.splitlines() if "Session Options {" in line)
    assert re.findall(r"thread_pool_size: (\d+)", told) == ["2", "3"]
    for fact in (
        "execution_mode:1",
        "graph_optimization_level:1 ",
        "enable_cpu_mem_arena:0",
        "session.intra_op.allow_spinning: 0",
    ):
        assert fact in told
    assert "session.dynamic_block_base" not in told
    record = run.record
    # Java's API has no place for options of the CPU provider.
    assert record["options_not_set"] == ["provider_options"]
    unset = ("session.dynamic_block_base", "provider_options")
    assert record["session_options"] == {k: v for k, v in options.items() if k not in unset}
    assert len(record["profile_run_ns"]) == 10
    events = json.loads(Path(record["profile_file"]).read_text())
    assert sum(event["name"] == "model_run" for event in events) == 10


def _load(program: Program, folder: Path, arrivals: list[int], *more: str) -> dict[str, Any]:
    np.array(arrivals, "<i8").tofile(folder / "arrivals.bin")
    write_tensors(folder / "inputs", {"x": X}, batch=2)
    paths = program.paths(folder, "linear")
    run = program.start(folder, *paths, "--mode", "load", "--arrivals", folder / "arrivals.bin", *more)
    assert run.code == 0, run.stderr
    return run.record


def test_load_serves_what_arrives_with_two_sessions(program: Program, tmp_path: Path) -> None:
    arrivals = [index * 200_000 for index in range(200)]
    record = _load(program, tmp_path, arrivals, "--sessions", "2", "--max-seconds", "300")
    assert (record["mode"], record["sessions"], record["arrivals"]) == ("load", 2, 200)
    assert record["stop_reason"] == "all-served"
    start, end = record["start_ns"], record["end_ns"]
    assert len(start) == len(end) == 200
    assert all(a <= s < e for a, s, e in zip(arrivals, start, end, strict=True))
    assert record["outputs"]["rows"] == 7
    assert "run_ns" not in record


def test_load_ends_at_the_limit(program: Program, tmp_path: Path) -> None:
    # Twice the last arrival plus no second: over before it began.
    record = _load(program, tmp_path, [0, 0, 0], "--max-seconds", "0")
    assert (record["start_ns"], record["end_ns"]) == ([], [])
    assert record["stop_reason"] == "time-limit"


def test_cases_go_on_after_one_that_fails(program: Program, tmp_path: Path) -> None:
    nothing: dict[str, np.ndarray] = {}
    given = {
        "identity": ({"x": X}, "ok"),
        "linear": ({"x": X.reshape(4, 7)}, "failed"),
        "identity-uint32": ({"x": np.array([[1, 2]], np.uint32)}, "unsupported"),
        "identity-string": ({"x": np.array([["\N{GRINNING FACE}"]], object)}, "unsupported"),
        "constant-text": (nothing, "unsupported"),
        "unknown": ({"x": X}, "failed"),
        "scalar": ({"x": np.array(1, np.float32)}, "ok"),
    }
    cases = []
    for model, (tensors, _) in given.items():
        inputs = write_tensors(tmp_path / f"in-{model}", tensors).parent
        paths = {"inputs": str(inputs), "outputs": str(tmp_path / f"out-{model}")}
        cases.append({"name": model, "model": str(program.models / f"{model}.onnx")} | paths)
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    arguments = ("--mode", "cases", "--cases", tmp_path / "cases.json")
    run = program.start(tmp_path, *arguments)
    assert run.code == 0, run.stderr
    lines = run.lines()
    assert [line["case"] for line in lines] == [i // 2 for i in range(2 * len(cases))]
    assert {line["status"] for line in lines[::2]} == {"started"}
    found = {line["name"]: line["status"] for line in lines[1::2]}
    assert found == {model: status for model, (_, status) in given.items()}
    assert "invalid dimensions" in lines[3]["message"]
    assert (tmp_path / "out-scalar" / "header.json").exists()
    # What is run again is appended.
    again = program.start(tmp_path, *arguments, "--skip", "5").lines()[len(lines) :]
    assert [line["case"] for line in again] == [5, 5, 6, 6]


def test_values_that_java_cannot_hand_on_are_bad_input(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "identity-uint32", {"x": np.array([[1]], np.uint32)})
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "uint32" in run.record["message"]
    assert run.stderr.splitlines() == [f"java: {run.record['message']}"]


def test_strings_that_are_cut_or_too_many_are_named(program: Program, tmp_path: Path) -> None:
    three = write_tensors(tmp_path / "three", {"x": np.array(["abc", "d", "e"], object)}).parent
    whole = (three / "tensor-0.bin").read_bytes()
    for raw in (whole, whole[:-1] + b"\xff\xff", whole[:7] + b"\xff\xff\xff\x7f"):
        write_tensors(tmp_path / "inputs", {"x": np.array([["abc", "d"]], object)})
        (tmp_path / "inputs" / "tensor-0.bin").write_bytes(raw)
        run = program.start(tmp_path, *program.paths(tmp_path, "identity-string"))
        assert (run.code, run.record["cause"]) == (2, "bad-input")
        assert "expected 2 strings of tensor 'x'" in run.record["message"]


def test_library_that_cannot_be_loaded_is_a_missing_dependency(program: Program, tmp_path: Path) -> None:
    (tmp_path / "libonnxruntime.so").write_text("no library")
    write_tensors(tmp_path / "inputs", {"x": X})
    launcher = Path(program.python).parent / "transect-runner-java"
    paths = [*program.paths(tmp_path, "linear"), "--record", tmp_path / "record.json"]
    command = [launcher, "--library", tmp_path / "libonnxruntime.so", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    record = json.loads((tmp_path / "record.json").read_text())
    assert (done.returncode, record["cause"]) == (1, "missing-dependency")


def test_cuda_without_a_device_is_skipped(program: Program, tmp_path: Path) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    given = (*program.paths(tmp_path, "linear"), "--provider", "cuda")
    # Hides every device, on a machine that has one too.
    run = program.start(tmp_path, *given, CUDA_VISIBLE_DEVICES="-1")
    assert run.code == 3
    assert (run.record["status"], run.record["reason"]) == ("skipped", "no CUDA device")


@pytest.mark.env
def test_missing_or_old_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = RUNTIMES.get("java")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("java", "javac", "mvn"):
        told = runtime.supports(infer_cell("java")) or ""
        assert told.startswith(f"{name} is not on PATH: install ")
        (tmp_path / name).write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
        (tmp_path / name).chmod(0o755)
    java_runtime._old_java.cache_clear()
    try:
        assert "install a JDK, version 17" in (runtime.supports(infer_cell("java")) or "")
    finally:
        java_runtime._old_java.cache_clear()
