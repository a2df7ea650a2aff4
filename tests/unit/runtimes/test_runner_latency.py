"""Level `latency` in every language: what is measured, what the record says, what the session had."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from runner_program import EVERY, LINEAR, NATIVE, SCRIPTS, Program, X, is_narrow

from factories import infer_cell
from transect.onnx_models.tensors import write_tensors
from transect.runtimes import RUNNERS, RUNTIMES
from transect.runtimes import java as java_runtime
from transect.runtimes.infer import options_seen

VERSIONS = {"c": "C11, ", "cpp": "C++17, ", "rust": "Rust 1.", "go": "Go 1.", "java": "Java "}


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_rows_are_run_in_batches_the_partial_one_included(program: Program, tmp_path: Path) -> None:
    before = time.monotonic_ns()
    run = program.latency(tmp_path, "linear", {"x": X}, batch=3)
    after = time.monotonic_ns()
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(LINEAR, abs=1e-5)
    record = run.record
    reported = (record["runner"], record["status"], record["mode"], record["provider_used"])
    assert reported == (program.runtime, "ok", "latency", "cpu")
    assert record["outputs"] == {"header": str(tmp_path / "outputs" / "header.json"), "rows": 7}
    assert len(record["run_ns"]) == len(record["bind_ns"]) == len(record["copy_ns"]) >= 20
    # Steps of a browser's clock are longer than some parts; what is done inside of `Run` has no time of its own.
    least = 0 if program.runtime in SCRIPTS else 1
    for part in ("bind", "copy"):
        inside = part in record["run_includes"]
        assert all(value == 0 if inside else value >= least for value in record[f"{part}_ns"]), part
    assert min(record["run_ns"]) >= least and sum(record["run_ns"]) > 0
    assert record["language_version"].startswith(VERSIONS.get(program.runtime, ""))
    assert record["runtime_version"] == "1.29.0"
    assert (record["session_options"], record["options_not_set"]) == ({}, [])
    assert record["peak_memory_bytes"] > 1 << 20 and record["session_ns"] > 0
    # The same clock as this process's, which is CLOCK_MONOTONIC.
    assert before < record["first_result_ns"] < after
    if program.runtime == "java":
        assert "-XX:+UseSerialGC" in record["language_options"]["jvm_flags"]
        assert record["language_options"]["collections_while_timed"] >= 0
    if program.runtime in SCRIPTS:
        assert run.stderr == ""
        assert record["garbage_collection"] == "on, after a collection before the measurement"


@pytest.mark.parametrize("program", [*NATIVE, "java"], indirect=True)
def test_library_of_the_wheel_is_the_one_that_runs(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "linear", {"x": X})
    files = RUNTIMES.get(program.runtime).files(program.python)
    assert Path(run.record["library_file"]) == files[1].resolve()
    assert "onnxruntime/capi/libonnxruntime.so.1.29.0" in run.record["library_file"]
    assert all(file.exists() for file in files)
    assert run.record["outputs"]["rows"] is None


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_measurement_ends_when_the_interval_is_narrow_or_the_time_is_up(program: Program, tmp_path: Path) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    record = program.serve(tmp_path, "linear", min_runs=50, max_seconds=0.2, warmup=20).record
    assert len(record["run_ns"]) >= 50
    if program.runtime == "browser":
        # Steps of the clock that are longer than a hundredth of a run hide what the interval is.
        assert record["clock_resolution_ns"] == 5000
        assert all(value % 5000 == 0 for value in record["run_ns"])
    elif program.runtime == "javascript":
        # The step of the clock, a nanosecond, counts to the interval's width here.
        assert is_narrow(record["run_ns"]) or record["stop_reason"] == "time-limit"
    else:
        looks = [50]  # after so many runs it looks whether the interval is narrow
        while (following := math.ceil(looks[-1] * 1.25)) <= len(record["run_ns"]):
            looks.append(following)
        narrow_at = [count for count in looks if is_narrow(record["run_ns"][:count])]
        reached = record["stop_reason"] == "interval-reached"
        assert narrow_at == ([len(record["run_ns"])] if reached else [])
        assert reached or record["stop_reason"] == "time-limit"


@pytest.mark.parametrize("program", EVERY, indirect=True)
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
    run = program.latency(tmp_path, "linear", {"x": X}, profile=tmp_path / "profile", options=options)
    assert run.code == 0, run.stderr
    record, seen, not_set = run.record, options_seen(run.stderr), ["provider_options"]
    hidden = set()
    if program.runtime == "browser":
        # The one pool of WebAssembly: its threads are seen in the profile alone.
        assert record["wasm_threads"] == 2
        not_set, hidden = (
            ["inter_op_num_threads", "session.intra_op.allow_spinning", *not_set],
            {"intra_op_num_threads"},
        )
    assert record["options_not_set"] == not_set
    kept = {key: value for key, value in options.items() if value is not None and key not in not_set}
    assert record["session_options"] == kept
    assert {key: seen.get(key) for key in kept.keys() - hidden} == {key: kept[key] for key in kept.keys() - hidden}
    assert "session.dynamic_block_base" not in seen
    assert len(record["profile_run_ns"]) == 10
    events = json.loads((tmp_path / record["profile_file"]).read_text())
    assert sum(event["name"] == "model_run" for event in events) == 10
    others = [event["args"]["thread_scheduling_stats"] for event in events if event["cat"] == "Node"]
    assert others and all(len(stats["sub_threads"]) == 1 for stats in others)


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


@pytest.mark.env
def test_missing_or_old_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = RUNTIMES.get("java")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("java", "javac", "mvn"):
        reason = runtime.supports(infer_cell("java")) or ""
        assert reason.startswith(f"{name} is not on PATH: install ")
        (tmp_path / name).write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
        (tmp_path / name).chmod(0o755)
    java_runtime._old_java.cache_clear()
    try:
        assert "install a JDK, version 17" in (runtime.supports(infer_cell("java")) or "")
    finally:
        java_runtime._old_java.cache_clear()
