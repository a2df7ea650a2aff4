"""The runners in C, C++, Rust and Go, beside what all runners are tested for."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkouts import environment_python
from transect.domain.cell import Cell
from transect.onnx_models.tensors import DTYPES, NoTensor, read_tensors, write_tensors
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.conditions import options_seen

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
LANGUAGES = {"c": "C11, ", "cpp": "C++17, ", "rust": "Rust 1.", "go": "Go 1."}
# What a case comes to whose output is an absent optional.
ABSENT = {"c": "ok", "cpp": "ok", "rust": "unsupported", "go": "unsupported"}
WORDS = ["", "ohm", "Ω", "a longer one, with a line\nbreak", "日本", "x" * 300]


@dataclass
class Program:
    """A runner of one language, and the models to run."""

    name: str
    python: str
    models: Path

    def start(self, folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
        """Run it; what it writes is in `folder`."""
        given = ["--record", str(folder / "record.json"), *map(str, arguments)]
        command = RUNTIMES.get(self.name).command(self.python, given)
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)

    def paths(self, folder: Path, model: str) -> tuple[Any, ...]:
        """Return the arguments that name model, inputs and outputs, for few quick iterations."""
        return ("--model", self.models / f"{model}.onnx", "--inputs", folder / "inputs",
                "--outputs", folder / "outputs", "--warmup", 2, "--min-runs", 20,
                "--max-seconds", 0)  # fmt: skip

    def latency(
        self, folder: Path, model: str, tensors: Mapping[str, np.ndarray], *more: Any, **header: Any
    ) -> tuple[int, dict[str, Any], str]:
        """Run mode `latency`; return exit code, record and standard error."""
        write_tensors(folder / "inputs", tensors, **header)
        done = self.start(folder, *self.paths(folder, model), *more)
        return done.returncode, json.loads((folder / "record.json").read_text()), done.stderr


@pytest.fixture(scope="module")
def models(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    helper = Path(__file__).with_name("native_models.py")
    subprocess.run([torch_python, str(helper), str(folder), *DTYPES], check=True)
    return folder


@pytest.fixture(scope="module", params=["c", "cpp", "rust", "go"])
def program(
    request: pytest.FixtureRequest, models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Program:
    runtime = RUNTIMES.get(request.param)
    cell = Cell.of(stage="infer", workload="x", runtime=request.param, provider="cpu", batch=1)
    if reason := runtime.supports(cell):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("environment")
    return Program(request.param, environment_python(runtime.environment, folder), models)


def test_rows_are_run_in_batches_the_partial_one_included(program: Program, tmp_path: Path) -> None:
    before = time.monotonic_ns()
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, batch=3)
    after = time.monotonic_ns()
    assert (code, record["status"]) == (0, "ok"), stderr
    assert np.array_equal(read_tensors(tmp_path / "outputs")["y"], np.maximum(X, 0))
    assert record["outputs"] == {"header": str(tmp_path / "outputs" / "header.json"), "rows": 7}
    assert len(record["run_ns"]) == len(record["bind_ns"]) == len(record["copy_ns"]) == 20
    assert all(time > 0 for time in record["run_ns"] + record["bind_ns"])
    # What is done inside of `Run` has no time of its own.
    assert all((time == 0) == ("copy" in record["run_includes"]) for time in record["copy_ns"])
    assert (record["runner"], record["mode"]) == (program.name, "latency")
    assert record["language_version"].startswith(LANGUAGES[program.name])
    assert record["runtime_version"] == "1.29.0"
    assert record["peak_memory_bytes"] > 1 << 20
    assert record["session_options"] == {}
    # The same clock as this process's, which is CLOCK_MONOTONIC.
    assert before < record["first_result_ns"] < after
    library = RUNTIMES.get(program.name).files(program.python)[1]
    assert Path(record["library_file"]) == library.resolve()


def test_peak_memory_is_the_runners_and_not_that_of_who_started_it(
    program: Program, tmp_path: Path
) -> None:
    launcher = np.ones(512 << 20, np.uint8)
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X})
    assert code == 0, stderr
    assert 1 << 20 < record["peak_memory_bytes"] < launcher.nbytes


def test_measurement_ends_as_the_contract_says(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, record, _ = program.latency(tmp_path, "relu", {"x": X})
    # By the arithmetic of the runners in Python.
    monkeypatch.syspath_prepend(str(RUNNERS / "python"))
    narrow = importlib.import_module("latency").interval_is_narrow(record["run_ns"])
    for name in ("latency", "contract", "arguments", "tensors"):
        sys.modules.pop(name, None)
    assert record["stop_reason"] == ("interval-reached" if narrow else "time-limit")
    assert len(record["run_ns"]) == 20
    assert record["outputs"]["rows"] is None


def _raw(dtype: str, count: int) -> list[bytes]:
    """Return elements in the contract's bytes, patterns that are no number among them."""
    if dtype == "string":
        texts = [WORDS[i % len(WORDS)].encode() for i in range(count)]
        return [len(text).to_bytes(4, "little") + text for text in texts]
    if dtype == "bool":
        return [bytes([i % 2]) for i in range(count)]
    size = SIZES["".join(filter(str.isdigit, dtype))]
    raw = np.random.default_rng(count).bytes(size * count)
    return [raw[i * size : (i + 1) * size] for i in range(count)]


def _write_raw(folder: Path, entries: dict[str, tuple[str, list[int]]], **header: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = []
    for name, (dtype, shape) in entries.items():
        (folder / f"{name}.bin").write_bytes(b"".join(_raw(dtype, int(np.prod(shape)))))
        tensors.append({"name": name, "dtype": dtype, "shape": shape, "file": f"{name}.bin"})
    (folder / "header.json").write_text(json.dumps({"tensors": tensors, **header}))


@pytest.mark.parametrize(("shape", "header"), [
    ([5, 3], {"batch": 2}), ([5, 3], {}), ([2, 0], {}), ([0, 3], {}), ([2, 0], {"batch": 1}),
])  # fmt: skip
def test_every_type_comes_back_bit_by_bit(
    program: Program, tmp_path: Path, shape: list[int], header: dict[str, int]
) -> None:
    _write_raw(tmp_path / "inputs", {dtype: (dtype, shape) for dtype in DTYPES}, **header)
    done = program.start(tmp_path, *program.paths(tmp_path, "types"))
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "outputs" / "header.json").read_text())["tensors"]
    assert [entry["name"] for entry in told] == [f"{dtype}_out" for dtype in DTYPES]
    assert [entry["file"] for entry in told] == [f"output-{i}.bin" for i in range(len(DTYPES))]
    for entry, dtype in zip(told, DTYPES, strict=True):
        assert (entry["dtype"], entry["shape"]) == (dtype, shape)
        sent = (tmp_path / "inputs" / f"{dtype}.bin").read_bytes()
        assert (tmp_path / "outputs" / entry["file"]).read_bytes() == sent, dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_come_back_or_are_said_to_be_beyond_the_binding(
    program: Program, tmp_path: Path, dtype: str
) -> None:
    _write_raw(tmp_path / "inputs", {"x": (dtype, [])})
    done = program.start(tmp_path, *program.paths(tmp_path, f"scalar-{dtype}"))
    if program.name == "go" and dtype in ("float16", "bfloat16", "string"):
        assert done.returncode == 2
        assert "onnxruntime_go has no scalars of" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "outputs" / "header.json").read_text())["tensors"]
    assert [(entry["dtype"], entry["shape"]) for entry in told] == [(dtype, [])]
    assert (tmp_path / "outputs" / "output-0.bin").read_bytes() == b"".join(_raw(dtype, 1))


@pytest.mark.parametrize("with_default", [False, True])
def test_input_with_a_default_may_be_left_out(
    program: Program, tmp_path: Path, with_default: bool
) -> None:
    b = np.array([1, 2, 3, 4], np.float32)
    tensors = {"k": np.arange(7), "x": X} | ({"b": b} if with_default else {})
    code, _, stderr = program.latency(tmp_path, "default", tensors)
    assert code == 0, stderr
    outputs = read_tensors(tmp_path / "outputs")
    assert list(outputs) == ["y", "l"]
    assert np.array_equal(outputs["y"], X + (b if with_default else 10))
    assert np.array_equal(outputs["l"], np.arange(7))


def test_what_is_no_tensor_is_named_by_its_kind(program: Program, tmp_path: Path) -> None:
    code, record, stderr = program.latency(tmp_path, "classes", {"x": X}, batch=3)
    assert (code, record["status"]) == (0, "ok"), stderr
    outputs = read_tensors(tmp_path / "outputs")
    assert outputs == {"y": NoTensor("sequence(map(int64,float32))")}


def test_absent_optional_has_a_kind_or_is_said_to_be_beyond_the_binding(
    program: Program, tmp_path: Path
) -> None:
    code, record, stderr = program.latency(tmp_path, "absent", {"x": X})
    if ABSENT[program.name] == "unsupported":
        assert (code > 0, record["status"]) == (True, "failed")
        return
    assert code == 0, stderr
    outputs = read_tensors(tmp_path / "outputs")
    assert outputs["o"] == NoTensor("optional(float32)")
    assert np.array_equal(outputs["y"], np.maximum(X, 0))


def test_type_that_the_contract_lacks_is_unsupported(program: Program, tmp_path: Path) -> None:
    code, record, _ = program.latency(tmp_path, "float8", {"x": X})
    assert (code, record["cause"]) == (2, "bad-input")
    assert "output" in record["message"]
    cases = [_case(tmp_path, "float8", program.models / "float8.onnx", {"x": X})]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "record.json").unlink()
    done = program.start(tmp_path, "--mode", "cases", "--cases", tmp_path / "cases.json")
    assert done.returncode == 0, done.stderr
    last = json.loads((tmp_path / "record.json").read_text().splitlines()[-1])
    assert (last["case"], last["status"]) == (0, "unsupported")


def test_input_that_is_left_out_and_has_no_default_is_named(
    program: Program, tmp_path: Path
) -> None:
    code, record, stderr = program.latency(tmp_path, "default", {"x": X})
    assert (code, record["cause"]) == (2, "bad-input")
    assert re.search(r"\bk\b", record["message"]), stderr


def test_profile_is_of_ten_runs_and_the_log_tells_the_options(
    program: Program, tmp_path: Path
) -> None:
    options = {"intra_op_num_threads": 2, "enable_mem_pattern": False, "execution_mode": "parallel",
               "inter_op_num_threads": 3, "session.intra_op.allow_spinning": "0",
               "enable_cpu_mem_arena": None}  # fmt: skip
    (tmp_path / "options.json").write_text(json.dumps(options))
    more = ("--options", tmp_path / "options.json", "--profile", "p")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, *more)
    assert code == 0, stderr
    given = {key: value for key, value in options.items() if value is not None}
    assert record["session_options"] == given
    seen = options_seen(stderr)
    assert {key: seen[key] for key in given} == given
    assert seen["enable_cpu_mem_arena"]
    assert len(record["profile_run_ns"]) == 10
    events = json.loads((tmp_path / record["profile_file"]).read_text())
    assert sum(event["name"] == "model_run" for event in events) == 10


@pytest.mark.parametrize("given", [{"device_id": "0"}, {}])
def test_options_of_a_provider_that_has_none_are_not_set(
    program: Program, tmp_path: Path, given: dict[str, str]
) -> None:
    options = {"intra_op_num_threads": 1, "provider_options": given}
    (tmp_path / "options.json").write_text(json.dumps(options))
    more = ("--options", tmp_path / "options.json")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, *more)
    assert code == 0, stderr
    assert record["session_options"] == {"intra_op_num_threads": 1}
    assert record["options_not_set"] == (["provider_options"] if given else [])


def _load(program: Program, folder: Path, arrivals: np.ndarray, *more: Any) -> dict[str, Any]:
    write_tensors(folder / "inputs", {"x": X}, batch=2)
    arrivals.astype("<i8").tofile(folder / "arrivals.bin")
    done = program.start(folder, *program.paths(folder, "relu"), "--mode", "load",
                         "--arrivals", folder / "arrivals.bin", *more)  # fmt: skip
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads((folder / "record.json").read_text())
    return record


def test_load_serves_all_with_two_sessions(program: Program, tmp_path: Path) -> None:
    arrivals = np.cumsum(np.full(200, 300_000))
    record = _load(program, tmp_path, arrivals, "--sessions", 2)
    assert (record["stop_reason"], record["sessions"], record["mode"]) == ("all-served", 2, "load")
    starts, ends = np.array(record["start_ns"]), np.array(record["end_ns"])
    assert len(starts) == len(ends) == 200
    assert (starts >= arrivals).all()
    assert (ends > starts).all()
    assert np.array_equal(read_tensors(tmp_path / "outputs")["y"], np.maximum(X, 0))
    assert "run_ns" not in record


def test_load_leaves_what_comes_too_late(program: Program, tmp_path: Path) -> None:
    # The time is up as soon as it begins.
    record = _load(program, tmp_path, np.zeros(100_000), "--sessions", 2)
    assert record["stop_reason"] == "time-limit"
    assert len(record["start_ns"]) == len(record["end_ns"]) < record["arrivals"] == 100_000


def test_arrival_beyond_36_years_is_bad_input(program: Program, tmp_path: Path) -> None:
    write_tensors(tmp_path / "inputs", {"x": X}, batch=2)
    np.array([0, 2**61], "<i8").tofile(tmp_path / "arrivals.bin")
    done = program.start(tmp_path, *program.paths(tmp_path, "relu"), "--mode", "load",
                         "--arrivals", tmp_path / "arrivals.bin")  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "arrivals.bin" in done.stderr


def _case(folder: Path, name: str, model: Path, tensors: dict[str, np.ndarray]) -> dict[str, str]:
    write_tensors(folder / name, tensors)
    return {"name": name, "model": str(model), "inputs": str(folder / name),
            "outputs": str(folder / f"{name}-outputs")}  # fmt: skip


def test_cases_go_on_after_one_that_fails_and_from_where_they_are_told(
    program: Program, tmp_path: Path
) -> None:
    models = {name: program.models / f"{name}.onnx" for name in ("relu", "fails", "absent")}
    cases = [
        _case(tmp_path, "good", models["relu"], {"x": X}),
        _case(tmp_path, "fails", models["fails"], {"x": X[:3]}),
        _case(tmp_path, "gone", tmp_path / "gone.onnx", {"x": X}),
        _case(tmp_path, "absent", models["absent"], {"x": X}),
        _case(tmp_path, "other", models["relu"], {"x": X.astype(np.int64)}),
        _case(tmp_path, "again", models["relu"], {"x": X + 1}),
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    given = ("--mode", "cases", "--cases", tmp_path / "cases.json")
    done = program.start(tmp_path, *given)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "record.json").read_text().splitlines()]
    assert [line["case"] for line in lines] == [i for i in range(6) for _ in range(2)]
    assert all(line["name"] == cases[line["case"]]["name"] for line in lines)
    assert all(line["status"] == "started" for line in lines[::2])
    verdicts = {line["name"]: line for line in lines[1::2]}
    assert {name: verdict["status"] for name, verdict in verdicts.items()} == {
        "good": "ok", "fails": "failed", "gone": "failed", "absent": ABSENT[program.name],
        "other": "failed", "again": "ok",
    }  # fmt: skip
    # In ONNX Runtime's words.
    assert "Reshape" in verdicts["fails"]["message"]
    assert "gone.onnx" in verdicts["gone"]["message"]
    assert all(line.get("message") or line["status"] == "ok" for line in lines[1::2])
    assert np.array_equal(read_tensors(tmp_path / "again-outputs")["y"], np.maximum(X + 1, 0))

    assert program.start(tmp_path, *given, "--skip", 5).returncode == 0
    more = [json.loads(line) for line in (tmp_path / "record.json").read_text().splitlines()]
    assert more[:12] == lines
    assert [(line["case"], line["status"]) for line in more[12:]] == [(5, "started"), (5, "ok")]


@pytest.mark.parametrize("content", ["{}", '[{"name": "x"}]', "[3]", "[", None])
def test_list_of_cases_that_is_none_is_bad_input(
    program: Program, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "cases.json").write_text(content)
    done = program.start(tmp_path, "--mode", "cases", "--cases", tmp_path / "cases.json")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{program.name}: ")
    assert "cases.json" in done.stderr
    assert not (tmp_path / "record.json").exists()


@pytest.mark.parametrize(("dtype", "raw", "words"), [
    ("string", b"\3\0\0\0abc\5\0\0\0abcd", "ends within string 1"),
    ("string", b"\0\0\0\0\1\0\0\0\xff", "UTF-8"),
    ("string", b"\0\0\0\0\0\0\0\0\0\0\0\0", "are left after 2 strings"),
    ("string", b"\0\0\0\0", "takes >= "),
    ("bool", b"\0\2", "0 and 1"),
])  # fmt: skip
def test_elements_that_are_none_are_bad_input(
    program: Program, tmp_path: Path, dtype: str, raw: bytes, words: str
) -> None:
    _write_raw(tmp_path / "inputs", {"x": (dtype, [2])})
    (tmp_path / "inputs" / "x.bin").write_bytes(raw)
    done = program.start(tmp_path, *program.paths(tmp_path, f"scalar-{dtype}"))
    assert done.returncode == 2
    assert words in done.stderr
    assert "x.bin" in done.stderr


@pytest.mark.parametrize("batch", [2**63, 2**64 - 1, 2**64])
def test_batch_beyond_64_bits_is_bad_input(program: Program, tmp_path: Path, batch: int) -> None:
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, batch=batch)
    assert (code, record["cause"]) == (2, "bad-input"), stderr
    assert "header.json" in record["message"]


@pytest.mark.parametrize(("model", "batch"), [("pairs", 2), ("sequence", 7)])
def test_inputs_that_the_model_refuses_are_bad_input(
    program: Program, tmp_path: Path, model: str, batch: int
) -> None:
    # Of seven rows the last pair is one; a tensor is no sequence.
    code, record, stderr = program.latency(tmp_path, model, {"x": X}, batch=batch)
    assert (code, record["cause"]) == (2, "bad-input"), stderr
    assert re.search(r"\bx\b", record["message"]), stderr


def test_outputs_without_the_rows_cannot_be_joined(program: Program, tmp_path: Path) -> None:
    code, record, _ = program.latency(tmp_path, "total", {"x": X}, batch=3)
    assert (code, record["cause"]) == (2, "bad-input")
    assert "output 'y' has shape [1" in record["message"]
    code, _, _ = program.latency(tmp_path, "total", {"x": X})
    assert code == 0
    assert np.array_equal(read_tensors(tmp_path / "outputs")["y"], X.sum(0, keepdims=True))


def test_cuda_without_a_device_is_skipped(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Hides every device, on a machine that has one too.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, "--provider", "cuda")
    assert (code, record["status"], record["reason"]) == (3, "skipped", "no CUDA device")
    assert "no CUDA device" in stderr
    assert "run_ns" not in record


def test_device_without_cudas_libraries_is_skipped_and_not_run_on_the_cpu(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("cc is not on PATH: it compiles a driver that shows a device")
    with contextlib.suppress(OSError):
        ctypes.CDLL("libcublasLt.so.13")
        pytest.skip("this machine has CUDA's libraries")
    (tmp_path / "driver.c").write_text(
        "int cuInit(unsigned f) { return f; }\n"
        "int cuDeviceGetCount(int *n) { *n = 1; return 0; }\n"
        "int cuMemcpyDtoH_v2(void *to, void *from, long size) { return !to + !from + !size; }\n"
    )
    command = ["cc", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    options = {"provider_options": {"device_id": "0", "use_tf32": "0"}}
    (tmp_path / "options.json").write_text(json.dumps(options))
    given = ("--provider", "cuda", "--options", tmp_path / "options.json")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X}, *given)
    assert (code, record["status"]) == (3, "skipped"), stderr
    assert "libcublasLt" in record["reason"]
    assert "provider_used" not in record


def test_library_that_is_none_is_a_missing_dependency(program: Program, tmp_path: Path) -> None:
    runtime = RUNTIMES.get(program.name)
    binary = runtime.command(program.python, [])[0]
    write_tensors(tmp_path / "inputs", {"x": X})
    (tmp_path / "libonnxruntime.so").write_bytes(b"no library")
    for library, code, cause in (
        (tmp_path / "libonnxruntime.so", 1, "missing-dependency"),
        (tmp_path / "gone.so", 2, "bad-input"),
    ):
        given = [*program.paths(tmp_path, "relu"), "--record", tmp_path / "record.json"]
        command = [binary, "--library", str(library), *map(str, given)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        record = json.loads((tmp_path / "record.json").read_text())
        assert (done.returncode, record["cause"]) == (code, cause), done.stderr
        assert library.name in record["message"]


def test_outputs_that_cannot_be_written_are_said(program: Program, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file")
    code, record, stderr = program.latency(tmp_path, "relu", {"x": X})
    assert (code, record["cause"]) == (1, "crash")
    assert str(tmp_path / "outputs") in record["message"]
    assert stderr.startswith(f"{program.name}: ")
    assert stderr.count("\n") == 1


def test_record_that_cannot_be_written_leaves_no_other_file(
    program: Program, tmp_path: Path
) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    # A file cannot take a folder's name.
    (tmp_path / "record.json").mkdir()
    done = program.start(tmp_path, *program.paths(tmp_path, "relu"))
    assert done.returncode == 1
    assert "record.json" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"record.json", "inputs", "outputs"}


@pytest.mark.parametrize(("tool", "arguments"), [
    ("cargo", ["fmt", "--check", "--manifest-path", str(RUNNERS / "rust" / "Cargo.toml")]),
    ("gofmt", ["-l", str(RUNNERS / "go")]),
])  # fmt: skip
def test_sources_are_formatted(tool: str, arguments: list[str]) -> None:
    if shutil.which(tool) is None or (
        tool == "cargo" and subprocess.run(["cargo", "fmt", "--version"], check=False).returncode
    ):
        pytest.skip(f"{tool} cannot format on this machine")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
