"""What the runners in other languages than Python refuse, and how they end then."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from runner_program import BROWSER_AT_TIMES, EVERY, MAX_COUNT, NATIVE, SCRIPTS, Program, X

from thirds import thirds
from transect.onnx_models.tensors import write_tensors
from transect.runtimes import RUNTIMES

# Each: model, inputs, header, and words that the message must have, in C, C++, Rust and Go and in JavaScript.
UNFIT: dict[str, tuple[str, dict[str, np.ndarray], dict[str, int], list[str] | None, list[str] | None]] = {
    "one less": ("default", {"x": X}, {}, ["k"], ["k", "[x]"]),
    "one more": ("linear", {"x": X, "z": X}, {}, ["z"], ["[x]", "[x,z]"]),
    "one that has a value": ("default", {"x": X, "k": np.arange(7), "b": X[0]}, {}, None, ["[x,k,b]"]),
    # Of seven rows the last pair is one.
    "partial pair": ("pairs", {"x": X}, {"batch": 2}, ["x"], ["[1,4]", "[2,4]"]),
    "no sequence": ("takes-sequence", {"x": X}, {"batch": 7}, ["x"], None),
    "type of output": ("float8", {"x": X}, {}, ["output"], None),
    "operator": ("unknown", {"x": X}, {}, ["NoSuchOperator"], ["NoSuchOperator"]),
}


@pytest.mark.parametrize(
    ("program", "unfit"),
    [
        *thirds(NATIVE, [name for name, row in UNFIT.items() if row[3]], whole=NATIVE),
        *thirds(SCRIPTS, [name for name, row in UNFIT.items() if row[4]], whole=["javascript"]),
    ],
    indirect=["program"],
)
def test_inputs_that_do_not_fit_are_named(program: Program, tmp_path: Path, unfit: str) -> None:
    model, tensors, header, native, script = UNFIT[unfit]
    run = program.latency(tmp_path, model, tensors, **header)
    assert (run.code, run.record["cause"]) == (2, "bad-input"), run.stderr
    words = (native if program.runtime in NATIVE else script) or []
    assert [word for word in words if word not in run.record["message"]] == []
    assert f"{program.runtime}: " in run.stderr.splitlines()[-1]


@pytest.mark.parametrize("batch", [2, 7])
@pytest.mark.parametrize("program", MAX_COUNT, indirect=True)
def test_outputs_without_the_rows_of_the_batch_are_named(program: Program, tmp_path: Path, batch: int) -> None:
    run = program.latency(tmp_path, "transposed", {"x": X}, batch=batch)
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert re.search(rf"'y' has shape \[4(, |,| ){batch}\]", run.record["message"])


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_what_onnx_runtime_refuses_while_it_runs_is_a_crash(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "fails", {"x": X[:3]})
    assert (run.code, run.record["cause"]) == (1, "crash")
    assert "Reshape" in run.record["message"]


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_provider_that_is_not_there_is_skipped(program: Program, tmp_path: Path) -> None:
    provider = "webgpu" if program.runtime == "browser" else "cuda"
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


@pytest.mark.parametrize(
    ("program", "library", "code", "cause"),
    [
        *((name, "libonnxruntime.so", 1, "missing-dependency") for name in (*NATIVE, "java")),
        *((name, "gone.so", 2, "bad-input") for name in NATIVE),
    ],
    indirect=["program"],
)
def test_library_that_is_none_is_named(program: Program, tmp_path: Path, library: str, code: int, cause: str) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    (tmp_path / "libonnxruntime.so").write_bytes(b"no library")
    given = [*program.paths(tmp_path, "linear"), "--record", tmp_path / "record.json"]
    command = [RUNTIMES.get(program.runtime).command(program.python, [])[0], "--library", str(tmp_path / library)]
    done = subprocess.run([*command, *map(str, given)], capture_output=True, text=True, check=False)
    record = json.loads((tmp_path / "record.json").read_text())
    assert (done.returncode, record["cause"]) == (code, cause), done.stderr
    assert library in record["message"]
