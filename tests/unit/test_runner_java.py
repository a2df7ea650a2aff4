"""The Java runner as its users see it: its program on real models, under the runner contract."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from transect.domain.cell import Cell
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes import java as java_runtime

_CELL = Cell.of(stage="infer", workload="iris-mlp", runtime="java", provider="cpu", batch=1)
_QUICK = ("--warmup", "2", "--min-runs", "20", "--max-seconds", "0")


class Run:
    """What one run of the program left."""

    def __init__(self, done: subprocess.CompletedProcess[str], folder: Path) -> None:
        self.code, self.stderr, self.folder = done.returncode, done.stderr, folder
        path = folder / "record.json"
        self.text = path.read_text() if path.exists() else ""

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.text))

    def outputs(self) -> dict[str, Any]:
        """Return arrays by name, lists of strings, or the word for what is no tensor."""
        header = json.loads((self.folder / "outputs" / "header.json").read_text())
        found: dict[str, Any] = {}
        for entry in header["tensors"]:
            if "kind" in entry:
                found[entry["name"]] = entry["kind"]
                continue
            raw = (self.folder / "outputs" / entry["file"]).read_bytes()
            found[entry["name"]] = _decode(raw, entry["dtype"], entry["shape"])
        return found


def _decode(raw: bytes, dtype: str, shape: list[int]) -> Any:
    if dtype != "string":
        kind = {"bfloat16": "uint16"}.get(dtype, dtype)
        return np.frombuffer(raw, np.dtype(kind).newbyteorder("<")).reshape(shape)
    texts = []
    while raw:
        size = int.from_bytes(raw[:4], "little")
        texts.append(raw[4 : 4 + size].decode())
        raw = raw[4 + size :]
    assert len(texts) == np.prod(shape, dtype=int)
    return texts


def _strings(texts: list[str]) -> bytes:
    raw = [text.encode() for text in texts]
    return b"".join(len(text).to_bytes(4, "little") + text for text in raw)


def write_inputs(folder: Path, tensors: dict[str, Any], batch: int | None = None) -> Path:
    """Write tensors; a pair is a dtype and an array of its bits."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (None, np.asarray(value))
        dtype = dtype or ("string" if array.dtype.kind in "UO" else array.dtype.name)
        raw = _strings(list(array.reshape(-1))) if dtype == "string" else array.tobytes()
        (folder / f"{name}.bin").write_bytes(raw)
        shape = list(array.shape)
        entries.append({"name": name, "dtype": dtype, "shape": shape, "file": f"{name}.bin"})
    header = {"tensors": entries} | ({} if batch is None else {"batch": batch})
    (folder / "header.json").write_text(json.dumps(header))
    return folder


class Program:
    """Starts the program."""

    def __init__(self, python: str, models: Path) -> None:
        self.python, self.models = python, models

    def start(self, folder: Path, *arguments: str | Path, **variables: str) -> Run:
        """Run with these arguments and `--record FOLDER/record.json`."""
        given = [*map(str, arguments), "--record", str(folder / "record.json")]
        command = RUNTIMES.get("java").command(self.python, given)
        done = subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, check=False
        )
        return Run(done, folder)

    def latency(
        self,
        folder: Path,
        model: str,
        tensors: dict[str, Any],
        *more: str | Path,
        batch: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> Run:
        """Run a model once around."""
        inputs = write_inputs(folder / "inputs", tensors, batch)
        paths = ("--model", self.models / f"{model}.onnx", "--inputs", inputs)
        if options is not None:
            (folder / "options.json").write_text(json.dumps(options))
            more = ("--options", folder / "options.json", *more)
        return self.start(folder, *paths, "--outputs", folder / "outputs", *_QUICK, *more)


@pytest.fixture(scope="module")
def program(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    if reason := RUNTIMES.get("java").supports(_CELL):
        pytest.skip(reason)
    python = environment_python("runner-java", tmp_path_factory.mktemp("environment"))
    models = tmp_path_factory.mktemp("models")
    helper = Path(__file__).with_name("java_models.py")
    subprocess.run([torch_python, str(helper), str(models)], check=True)
    yield Program(python, models)


X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9


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
    assert record["runtime_version"] == "1.29.0"
    assert record["language_version"].startswith("Java ")
    assert record["session_ns"] > 0
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
    program: Program, tmp_path: Path
) -> None:
    sys.path.insert(0, str(RUNNERS / "python"))
    try:
        from latency import interval_is_narrow
    finally:
        sys.path.pop(0)
    inputs = write_inputs(tmp_path / "inputs", {"x": X})
    paths = ("--model", program.models / "identity.onnx", "--inputs", inputs)
    run = program.start(tmp_path, *paths, "--outputs", tmp_path / "o", "--max-seconds", "0.2")
    record = run.record
    assert len(record["run_ns"]) >= 100
    narrow = interval_is_narrow(record["run_ns"])
    assert record["stop_reason"] == ("interval-reached" if narrow else "time-limit")


@pytest.mark.parametrize(
    ("model", "value"),
    [
        ("identity-bfloat16", ("bfloat16", np.array([[0x3F80, 0x4049]], np.uint16))),
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
def test_numbers_come_out_as_they_went_in(
    program: Program, tmp_path: Path, model: str, value: Any
) -> None:
    run = program.latency(tmp_path, model, {"x": value})
    assert run.code == 0, run.stderr
    array = value[1] if isinstance(value, tuple) else value
    found = run.outputs()["y"]
    assert found.shape == array.shape
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()
    assert run.record["outputs"]["rows"] is None


def test_several_inputs_and_outputs_of_other_types(program: Program, tmp_path: Path) -> None:
    numbers = np.array([[1, 2], [3, 70000], [5, 6]])
    texts, flags = np.array(["a", "", "größer 日本"]), np.array([True, False, True])
    run = program.latency(tmp_path, "mixed", {"b": flags, "i": numbers, "s": texts}, batch=2)
    assert run.code == 0, run.stderr
    found = run.outputs()
    for name, dtype in (("u16", "u2"), ("u32", "u4"), ("u64", "u8"), ("i32", "i4"), ("f64", "f8")):
        assert np.array_equal(found[name], numbers.astype(dtype)), name
    assert found["t"] == list(texts)
    assert np.array_equal(found["c"], ~flags)


def test_empty_tensor_of_strings(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "identity-string", {"x": np.zeros((0, 2), object)})
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == []


def test_what_is_no_tensor_has_a_kind(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "sequence", {"x": X})
    assert run.code == 0, run.stderr
    assert "Sequence" in run.outputs()["y"]
    assert not (tmp_path / "outputs" / "output-0.bin").exists()


def test_options_are_those_that_onnx_runtime_says_it_has(program: Program, tmp_path: Path) -> None:
    options = {
        "intra_op_num_threads": 2,
        "inter_op_num_threads": 3,
        "execution_mode": "parallel",
        "graph_optimization_level": "basic",
        "enable_cpu_mem_arena": False,
        "enable_mem_pattern": False,
        "session.intra_op.allow_spinning": "0",
        "session.dynamic_block_base": None,
    }
    profile = ("--profile", tmp_path / "profile")
    run = program.latency(tmp_path, "linear", {"x": X}, *profile, options=options)
    assert run.code == 0, run.stderr
    told = next(line for line in run.stderr.splitlines() if "Session Options {" in line)
    sizes = re.findall(r"thread_pool_size: (\d+)", told)
    assert sizes == ["2", "3"]
    for fact in (
        "execution_mode:1",
        "graph_optimization_level:1 ",
        "enable_cpu_mem_arena:0",
        "enable_mem_pattern:0",
        "session.intra_op.allow_spinning: 0",
    ):
        assert fact in told
    assert "dynamic_block_base: " not in told
    record = run.record
    assert record["session_options"] == {k: v for k, v in options.items() if v is not None}
    assert record["options_not_set"] == []
    assert len(record["profile_run_ns"]) == 10
    events = json.loads(Path(record["profile_file"]).read_text())
    assert sum(event["name"] == "model_run" for event in events) == 10


def test_options_of_the_cpu_provider_have_no_place_in_java(
    program: Program, tmp_path: Path
) -> None:
    options = {"provider_options": {"some": "thing"}, "enable_mem_pattern": True}
    run = program.latency(tmp_path, "identity", {"x": X}, options=options)
    assert run.record["options_not_set"] == ["provider_options"]
    assert run.record["session_options"] == {"enable_mem_pattern": True}


def _load(program: Program, folder: Path, arrivals: list[int], sessions: int, seconds: str) -> Run:
    np.array(arrivals, "<i8").tofile(folder / "arrivals.bin")
    inputs = write_inputs(folder / "inputs", {"x": X}, 2)
    arguments: list[str | Path] = [
        "--mode", "load", "--model", program.models / "linear.onnx", "--inputs", inputs,
        "--outputs", folder / "outputs", "--sessions", str(sessions), "--warmup", "3",
        "--arrivals", folder / "arrivals.bin", "--max-seconds", seconds,
    ]  # fmt: skip
    return program.start(folder, *arguments)


def test_load_serves_what_arrives_with_two_sessions(program: Program, tmp_path: Path) -> None:
    arrivals = [index * 200_000 for index in range(200)]
    run = _load(program, tmp_path, arrivals, 2, "300")
    assert run.code == 0, run.stderr
    record = run.record
    assert (record["mode"], record["sessions"], record["arrivals"]) == ("load", 2, 200)
    assert record["stop_reason"] == "all-served"
    start, end = record["start_ns"], record["end_ns"]
    assert len(start) == len(end) == 200
    assert all(a <= s < e for a, s, e in zip(arrivals, start, end, strict=True))
    assert record["outputs"]["rows"] == 7
    assert run.outputs()["y"].shape == (7, 3)
    assert "run_ns" not in record


def test_load_ends_at_the_limit(program: Program, tmp_path: Path) -> None:
    # Twice the last arrival plus no second: over before it began.
    record = _load(program, tmp_path, [0, 0, 0], 1, "0").record
    assert (record["start_ns"], record["end_ns"]) == ([], [])
    assert record["stop_reason"] == "time-limit"


def _case(program: Program, folder: Path, model: str, value: Any) -> dict[str, str]:
    name = f"{model} case"
    inputs = write_inputs(folder / f"in-{model}", {"x": value})
    path = program.models / f"{model}.onnx"
    return {
        "name": name,
        "model": str(path),
        "inputs": str(inputs),
        "outputs": str(folder / f"out-{model}"),
    }


def test_cases_go_on_after_one_that_fails(program: Program, tmp_path: Path) -> None:
    values = {
        "identity": X,
        "linear": X.reshape(4, 7),
        "identity-uint32": np.array([[1, 2]], np.uint32),
        "identity-string": np.array([["smile \N{GRINNING FACE}"]]),
        "constant-text": X,
        "unknown": X,
        "scalar": np.array(1, np.float32),
    }
    cases = [_case(program, tmp_path, model, value) for model, value in values.items()]
    # It takes no input.
    write_inputs(tmp_path / "in-constant-text", {})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    arguments = ("--mode", "cases", "--cases", tmp_path / "cases.json")
    run = program.start(tmp_path, *arguments)
    assert run.code == 0, run.stderr
    lines = [json.loads(line) for line in run.text.splitlines()]
    assert [line["case"] for line in lines] == [i // 2 for i in range(2 * len(cases))]
    assert {line["status"] for line in lines[::2]} == {"started"}
    status = {line["name"].removesuffix(" case"): line["status"] for line in lines[1::2]}
    assert status == {
        "identity": "ok",
        "linear": "failed",
        "identity-uint32": "unsupported",
        "identity-string": "unsupported",
        "constant-text": "unsupported",
        "unknown": "failed",
        "scalar": "ok",
    }
    assert "invalid dimensions" in lines[3]["message"]
    assert (tmp_path / "out-scalar" / "header.json").exists()
    # What is run again is appended.
    run = program.start(tmp_path, *arguments, "--skip", "5")
    again = [json.loads(line) for line in run.text.splitlines()][len(lines) :]
    assert [line["case"] for line in again] == [5, 5, 6, 6]


def _wrong_size(folder: Path) -> None:
    (folder / "inputs" / "x.bin").write_bytes(b"123")


def _huge(folder: Path) -> None:
    header = json.loads((folder / "inputs" / "header.json").read_text())
    header["tensors"][0]["shape"] = [1 << 40, 1 << 40]
    (folder / "inputs" / "header.json").write_text(json.dumps(header))


def _changed(key: str, value: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / "inputs" / "header.json"
        header = json.loads(path.read_text())
        header["tensors"][0][key] = value
        path.write_text(json.dumps(header))

    return change


def _batch(value: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / "inputs" / "header.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"batch": value}))

    return change


def _text(name: str, text: str) -> Any:
    def change(folder: Path) -> None:
        (folder / name).write_text(text)

    return change


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        (None, ("--speed", "9"), "argument '--speed'"),
        (None, ("--warmup",), "expected a value"),
        (None, ("--warmup", "1", "--warmup", "1"), "--warmup is given twice"),
        (None, ("--warmup", "-1"), "--warmup -1: expected a whole number >= 0"),
        (None, ("--min-runs", "0"), "--min-runs 0: expected a whole number >= 1"),
        (None, ("--max-seconds", "nan"), "--max-seconds nan: expected seconds >= 0"),
        (None, ("--mode", "fast"), "--mode fast: expected one of latency, load, cases"),
        (None, ("--mode", "load"), "--mode load needs --arrivals"),
        (None, ("--provider", "quantum"), "--provider quantum: expected one of cpu, cuda"),
        (None, ("--options", "o.json"), "o.json: expected a JSON file"),
        (_text("o.json", '{"a.b": "1",}'), ("--options", "o.json"), "o.json: expected a JSON file"),
        (_text("o.json", '{"a.b": 1}'), ("--options", "o.json"), "'a.b' is 1, expected a text"),
        (_text("o.json", '{"threads": 1}'), ("--options", "o.json"), "option 'threads' is 1"),
        (
            _text("o.json", '{"intra_op_num_threads": 1.5}'),
            ("--options", "o.json"),
            "is 1.5, expected a whole number >= 0",
        ),
        (
            _text("o.json", '{"execution_mode": "fast"}'),
            ("--options", "o.json"),
            'is "fast", expected one of sequential, parallel',
        ),
        (_text("inputs/header.json", "{"), (), "header.json: expected a JSON file"),
        (_text("inputs/header.json", "[]"), (), 'expected {"tensors": [...]}'),
        (_wrong_size, (), "holds 3 bytes, tensor 'x' of shape [7, 4] in float32 takes 112"),
        (_huge, (), "more than any file holds"),
        (_changed("dtype", "float8"), (), "tensor 'x' is \"float8\", expected one of"),
        (_changed("shape", [7, -4]), (), "shape [7,-4], expected sizes >= 0"),
        (_changed("file", "none.bin"), (), "tensor 'x' cannot be read"),
        (_changed("name", "z"), (), "--inputs gives 'z', the model takes [x]"),
        (_changed("shape", [4, 7]), (), "input 'x' is float32[4, 7], the model takes"),
        (_changed("dtype", "int32"), (), "input 'x' is int32[7, 4], the model takes"),
        (_batch(8), (), "needs N >= batch >= 1 rows"),
        (_batch(0), (), "needs N >= batch >= 1 rows"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    program: Program, tmp_path: Path, change: Any, more: tuple[str, ...], said: str
) -> None:
    inputs = write_inputs(tmp_path / "inputs", {"x": X})
    if change is not None:
        change(tmp_path)
    files = tuple(str(tmp_path / text) if text == "o.json" else text for text in more)
    paths = ("--model", program.models / "linear.onnx", "--inputs", inputs)
    # The record first: a value may be missing at the end.
    given = ("--record", tmp_path / "record.json", *paths, "--outputs", tmp_path / "o", *files)
    command = RUNTIMES.get("java").command(program.python, [str(part) for part in given])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    run = Run(done, tmp_path)
    assert run.code == 2, run.stderr
    assert said in run.record["message"]
    assert (run.record["status"], run.record["cause"]) == ("failed", "bad-input")
    assert len(run.stderr.splitlines()) == 1
    assert run.stderr.startswith("java: ")


@pytest.mark.parametrize("content", [b"", b"this is no model" * 9])
def test_file_that_is_no_model_is_bad_input(
    program: Program, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "wrong.onnx").write_bytes(content)
    inputs = write_inputs(tmp_path / "inputs", {"x": X})
    paths = ("--model", tmp_path / "wrong.onnx", "--inputs", inputs)
    run = program.start(tmp_path, *paths, "--outputs", tmp_path / "o")
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "wrong.onnx" in run.record["message"]


def test_model_that_is_not_there_is_named(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "none", {"x": X})
    assert run.code == 2
    assert run.record["message"].endswith("none.onnx: no such model file")


def test_values_that_java_cannot_hand_on_are_bad_input(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "identity-uint32", {"x": np.array([[1]], np.uint32)})
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "uint32" in run.record["message"]


def test_strings_that_are_cut_short_are_named(program: Program, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path / "inputs", {"x": np.array([["abc", "d"]])})
    for raw in (_strings(["abc", "d", "e"]), _strings(["abc"]) + b"\xff\xff\xff\x7f"):
        (inputs / "x.bin").write_bytes(raw)
        paths = ("--model", program.models / "identity-string.onnx", "--inputs", inputs)
        run = program.start(tmp_path, *paths, "--outputs", tmp_path / "o")
        assert run.code == 2
        assert "expected 2 strings of tensor 'x'" in run.record["message"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [(b"1234", "got 4 bytes"), (b"", "got 0 bytes")]
    + [(np.array(times, "<i8").tobytes(), "do not fall") for times in ([5, 4], [-1])],
)
def test_arrivals_that_cannot_be_are_named(
    program: Program, tmp_path: Path, raw: bytes, said: str
) -> None:
    (tmp_path / "a.bin").write_bytes(raw)
    inputs = write_inputs(tmp_path / "inputs", {"x": X})
    paths = ("--model", program.models / "linear.onnx", "--inputs", inputs)
    more = ("--outputs", tmp_path / "o", "--arrivals", tmp_path / "a.bin", "--mode", "load")
    run = program.start(tmp_path, *paths, *more)
    assert run.code == 2
    assert said in run.record["message"]


def test_without_a_record_there_is_only_the_message(program: Program) -> None:
    command = RUNTIMES.get("java").command(program.python, ["--mode", "cases"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("java: --mode cases needs --cases")


def test_library_that_cannot_be_loaded_is_a_missing_dependency(
    program: Program, tmp_path: Path
) -> None:
    (tmp_path / "libonnxruntime.so").write_text("no library")
    inputs = write_inputs(tmp_path / "inputs", {"x": X})
    launcher = Path(program.python).parent / "transect-runner-java"
    command = [launcher, "--library", tmp_path / "libonnxruntime.so", "--inputs", inputs]
    command += ["--model", program.models / "linear.onnx", "--outputs", tmp_path / "o"]
    command += ["--record", tmp_path / "record.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    run = Run(done, tmp_path)
    assert (run.code, run.record["cause"]) == (1, "missing-dependency")


def test_cuda_without_a_device_is_skipped(program: Program, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path / "inputs", {"x": X})
    paths = ("--model", program.models / "linear.onnx", "--inputs", inputs)
    more = ("--outputs", tmp_path / "o", "--provider", "cuda")
    # Hides every device, on a machine that has one too.
    run = program.start(tmp_path, *paths, *more, CUDA_VISIBLE_DEVICES="-1")
    assert run.code == 3
    assert (run.record["status"], run.record["reason"]) == ("skipped", "no CUDA device")


def test_missing_or_old_java_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = RUNTIMES.get("java")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("java", "javac", "mvn"):
        said = runtime.supports(_CELL) or ""
        assert said.startswith(f"{name} is not on PATH: install ")
        (tmp_path / name).write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
        (tmp_path / name).chmod(0o755)
    java_runtime._old_java.cache_clear()
    try:
        assert "install a JDK, version 17" in (runtime.supports(_CELL) or "")
    finally:
        java_runtime._old_java.cache_clear()
