"""The runners in C, C++, Rust and Go, beside what all runners are tested for."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from native_program import NATIVE, Program, X

from transect.onnx_models.tensors import read_tensors
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes.conditions import options_seen

LANGUAGES = {"c": "C11, ", "cpp": "C++17, ", "rust": "Rust 1.", "go": "Go 1."}


@pytest.fixture(scope="module", params=NATIVE)
def program(request: pytest.FixtureRequest, native_models: Path) -> Program:
    return Program.of(request.param, native_models)


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


def test_peak_memory_is_the_runners_and_not_that_of_who_started_it(program: Program, tmp_path: Path) -> None:
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


def test_profile_is_of_ten_runs_and_the_log_tells_the_options(program: Program, tmp_path: Path) -> None:
    options = {
        "intra_op_num_threads": 2,
        "enable_mem_pattern": False,
        "execution_mode": "parallel",
        "inter_op_num_threads": 3,
        "session.intra_op.allow_spinning": "0",
        "enable_cpu_mem_arena": None,
    }
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


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("cargo", ["fmt", "--check", "--manifest-path", str(RUNNERS / "rust" / "Cargo.toml")]),
        ("gofmt", ["-l", str(RUNNERS / "go")]),
    ],
)
@pytest.mark.env
def test_sources_are_formatted(tool: str, arguments: list[str]) -> None:
    if shutil.which(tool) is None or (
        tool == "cargo" and subprocess.run(["cargo", "fmt", "--version"], check=False).returncode
    ):
        pytest.skip(f"{tool} cannot format on this machine")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
