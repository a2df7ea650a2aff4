"""The runners in JavaScript: what is their own, beside what all runners are tested for."""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from runner_program import BROWSER_AT_TIMES, Program

from thirds import thirds
from transect.onnx_models.tensors import NoTensor, write_tensors
from transect.runtimes import RUNNERS

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
# As javascript_models.py makes it.
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
EXPECTED = np.maximum(X @ WEIGHT, 0)


@pytest.fixture(scope="module", params=["javascript", "browser"])
def program(request: pytest.FixtureRequest, javascript_models: Path) -> Program:
    return Program.of(request.param, javascript_models)


def test_rows_are_run_in_batches_the_partial_one_included(program: Program, tmp_path: Path) -> None:
    before = time.monotonic_ns()
    run = program.latency(tmp_path, "linear", {"x": X}, batch=3)
    after = time.monotonic_ns()
    assert (run.code, run.stderr) == (0, "")
    assert run.outputs()["y"] == pytest.approx(EXPECTED, abs=1e-5)
    record = run.record
    told = (record["runner"], record["status"], record["mode"], record["provider_used"])
    assert told == (program.runtime, "ok", "latency", "cpu")
    assert record["outputs"] == {"header": str(tmp_path / "outputs" / "header.json"), "rows": 7}
    assert len(record["run_ns"]) == len(record["bind_ns"]) == len(record["copy_ns"]) >= 20
    for part in ("bind", "copy"):
        inside = part in record["run_includes"]
        assert all((value == 0) if inside else (value >= 0) for value in record[f"{part}_ns"])
    assert sum(record["run_ns"]) > 0
    assert record["runtime_version"] == "1.29.0"
    assert record["garbage_collection"] == "on, after a collection before the measurement"
    assert record["session_options"] == {}
    assert record["options_not_set"] == []
    assert record["peak_memory_bytes"] > 1 << 20
    assert record["session_ns"] > 0
    # The same clock as this process's, which is CLOCK_MONOTONIC.
    assert before < record["first_result_ns"] < after


def test_measurement_ends_when_the_interval_is_narrow_or_the_time_is_up(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    more = ("--min-runs", "50", "--max-seconds", "0.2")
    record = program.start(tmp_path, *program.paths(tmp_path, "linear"), *more).record
    assert len(record["run_ns"]) >= 50
    assert record["clock_resolution_ns"] >= 1
    if program.runtime == "browser":
        # Steps of the clock that are longer than a hundredth of a run hide what the interval is.
        assert record["clock_resolution_ns"] == 5000
        assert all(value % 5000 == 0 for value in record["run_ns"])
        return
    # By the arithmetic of the runners in Python.
    monkeypatch.syspath_prepend(str(RUNNERS / "python"))
    narrow = importlib.import_module("latency").interval_is_narrow(record["run_ns"])
    for name in ("latency", "contract", "arguments", "tensors"):
        sys.modules.pop(name, None)
    # The step of the clock, a nanosecond, counts to the interval's width here.
    assert narrow or record["stop_reason"] == "time-limit"


def _types(rows: int = 3) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    names = {
        "f32": "f4",
        "f64": "f8",
        "f16": "f2",
        "i8": "i1",
        "i16": "i2",
        "i32": "i4",
        "i64": "i8",
        "u8": "u1",
        "u16": "u2",
        "u32": "u4",
        "u64": "u8",
    }
    found = {}
    for name, code in names.items():
        kind = np.dtype(code)
        if kind.kind == "f":
            found[name] = generator.normal(size=(rows, 2)).astype(kind)
        else:
            least, most = np.iinfo(kind).min, np.iinfo(kind).max
            found[name] = generator.integers(least, most, (rows, 2), kind, endpoint=True)
    found["flag"] = generator.integers(0, 2, (rows, 2)).astype(bool)
    texts = np.array(["", "a", "größer 日本", "line\nbreak", "\N{GRINNING FACE}", " "], object)
    found["text"] = np.resize(texts, (rows, 2))
    return found


@pytest.mark.parametrize("rows", [{}, {"batch": 2}])
def test_every_type_comes_out_as_it_went_in(program: Program, tmp_path: Path, rows: dict[str, int]) -> None:
    given = _types()
    run = program.latency(tmp_path, "types", given, **rows)
    assert run.code == 0, run.stderr
    found = run.outputs()
    assert list(found) == [f"{name}-out" for name in given]
    for name, array in given.items():
        other = found[f"{name}-out"]
        assert isinstance(other, np.ndarray)
        assert (other.shape, other.dtype) == (array.shape, array.dtype), name
        assert np.array_equal(other, array), name
    assert run.record["outputs"]["rows"] == (3 if rows else None)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0), (1, 2, 3)])
@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_scalars_and_empty_tensors_keep_their_shape(program: Program, tmp_path: Path, shape: tuple[int, ...]) -> None:
    given = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    run = program.latency(tmp_path, "identity", {"x": given})
    assert run.code == 0, run.stderr
    found = run.outputs()["y"]
    assert isinstance(found, np.ndarray)
    assert found.shape == shape
    assert np.array_equal(found, given)


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_axes_without_a_name_take_any_size(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "free", {"x": X}, batch=3)
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["y"], X)


def test_what_is_no_tensor_has_a_kind(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "sequence", {"x": X}, batch=3)
    assert run.code == 0, run.stderr
    found = run.outputs()
    assert np.array_equal(found["y"], np.maximum(X, 0))
    assert isinstance(found["s"], NoTensor)
    assert not (tmp_path / "outputs" / "output-1.bin").exists()


@pytest.mark.parametrize("program", ["javascript", "browser"], indirect=True)
def test_weights_in_a_file_of_their_own(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "external", {"x": X})
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(EXPECTED, abs=1e-5)


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_bfloat16_is_refused_by_name(program: Program, tmp_path: Path) -> None:
    header = write_tensors(tmp_path / "inputs", {"x": np.ones((1, 2), np.uint16)})
    header.write_text(header.read_text().replace("uint16", "bfloat16"))
    run = program.start(tmp_path, *program.paths(tmp_path, "bfloat16"))
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "bfloat16" in run.record["message"]


# Each with words that the message must have.
UNFIT: dict[str, tuple[str, dict[str, np.ndarray], dict[str, int], list[str]]] = {
    "one more": ("linear", {"x": X, "z": X}, {}, ["[x]", "[x,z]"]),
    "one that has a value": ("default", {"x": X, "d": X[0, :1]}, {}, ["[x]", "[x,d]"]),
    "one less": ("types", {"f32": X[:, :2]}, {}, ["i64", "[f32]"]),
    "batch": ("fixed", {"x": X}, {"batch": 2}, ["[1,4]", "[2,4]"]),
    "rows": ("fixed", {"x": X}, {}, ["[7,4]", "[2,4]"]),
    "operator": ("unknown", {"x": X}, {}, ["NoSuchOperator"]),
    "zero byte": ("types", {"text": np.array([["a\0b", ""]], object)}, {}, ["zero byte"]),
}


@pytest.mark.parametrize(
    ("program", "unfit"), thirds(("javascript", "browser"), UNFIT, whole=["javascript"]), indirect=["program"]
)
def test_inputs_that_do_not_fit_are_named(program: Program, tmp_path: Path, unfit: str) -> None:
    model, tensors, header, words = UNFIT[unfit]
    run = program.latency(tmp_path, model, tensors, **header)
    assert (run.code, run.record["cause"]) == (2, "bad-input"), run.stderr
    assert [word for word in words if word not in run.record["message"]] == []
    assert f"{program.runtime}: " in run.stderr.splitlines()[-1]


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_an_input_with_a_default_may_be_left_out(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "default", {"x": X})
    assert run.code == 0, run.stderr
    assert np.array_equal(run.outputs()["y"], X + 1)


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_what_onnx_runtime_refuses_while_it_runs_is_a_crash(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "reshape", {"x": X})
    assert (run.code, run.record["cause"]) == (1, "crash")
    assert "Reshape" in run.record["message"]


def test_options_are_those_that_onnx_runtime_says_it_has(program: Program, tmp_path: Path) -> None:
    options = {
        "intra_op_num_threads": 2,
        "inter_op_num_threads": 3,
        "execution_mode": "parallel",
        "graph_optimization_level": "basic",
        "enable_cpu_mem_arena": False,
        "enable_mem_pattern": True,
        "session.intra_op.allow_spinning": "0",
        "session.disable_prepacking": "1",
        "session.dynamic_block_base": None,
        "provider_options": {"some": "thing"},
    }
    profile = ("--profile", tmp_path / "profile")
    run = program.latency(tmp_path, "linear", {"x": X}, *profile, options=options)
    assert run.code == 0, run.stderr
    told = next(line for line in run.stderr.splitlines() if "Session Options {" in line)
    for fact in (
        "execution_mode:1",
        "graph_optimization_level:1 ",
        "enable_cpu_mem_arena:0",
        "enable_mem_pattern:1",
        "session.disable_prepacking: 1",
    ):
        assert fact in told
    assert "session.dynamic_block_base" not in told
    record = run.record
    not_set = ["provider_options"]
    if program.runtime == "javascript":
        assert re.findall(r"thread_pool_size: (\d+)", told) == ["2", "3"]
        assert "session.intra_op.allow_spinning: 0" in told
    else:
        # The one pool of WebAssembly: its threads are seen in the profile alone.
        assert "use_per_session_threads:0" in told
        assert record["wasm_threads"] == 2
        not_set = ["inter_op_num_threads", "session.intra_op.allow_spinning", *not_set]
    assert record["options_not_set"] == not_set
    unset = {"session.dynamic_block_base", *not_set}
    kept = {key: value for key, value in options.items() if key not in unset}
    assert record["session_options"] == kept
    assert len(record["profile_run_ns"]) == 10
    events = json.loads(Path(record["profile_file"]).read_text())
    assert sum(event["name"] == "model_run" for event in events) == 10
    others = [event["args"]["thread_scheduling_stats"] for event in events if event["cat"] == "Node"]
    assert others
    assert all(len(one["sub_threads"]) == 1 for one in others)


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_no_folder_for_the_profile_is_named(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "linear", {"x": X}, "--profile", tmp_path / "gone" / "p")
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert str(tmp_path / "gone") in run.record["message"]


def test_provider_that_is_not_there_is_skipped(program: Program, tmp_path: Path) -> None:
    provider = {"javascript": "cuda", "browser": "webgpu"}[program.runtime]
    write_tensors(tmp_path / "inputs", {"x": X})
    paths = program.paths(tmp_path, "linear")
    # Hides every CUDA device; a machine with a GPU for WebGPU runs instead.
    run = program.start(tmp_path, *paths, "--provider", provider, CUDA_VISIBLE_DEVICES="-1")
    if run.code == 0 and provider == "webgpu":
        pytest.skip("this machine has WebGPU")
    assert (run.code, run.record["status"]) == (3, "skipped")
    assert run.record["reason"] in run.stderr
    assert ("CUDA" if provider == "cuda" else "WebGPU") in run.record["reason"]
    assert "run_ns" not in run.record


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_outputs_that_cannot_be_written_are_named(program: Program, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file")
    run = program.latency(tmp_path, "linear", {"x": X})
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert str(tmp_path / "outputs") in run.record["message"]
