"""What the runners in other languages than Python refuse, and how they end then."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from runner_program import BROWSER_AT_TIMES, EVERY, MAX_COUNT, NATIVE, Program, X

from transect.domain.errors import BadInput
from transect.onnx_models.tensors import write_tensors
from transect.runtimes import _cuda
from transect.runtimes._cuda import no_cuda_reason
from transect.runtimes.plan_file import Entry, Role, read_plan
from transect.runtimes.programs import PLAN, RESULT, start_command

# Each: model, inputs, batch, and words that the message must have.
UNFIT: dict[str, tuple[str, dict[str, np.ndarray], int | None, str]] = {
    "one less": ("default", {"x": X}, None, "needs k"),
    "one more": ("linear", {"x": X, "z": X}, None, "no input 'z', it takes x"),
    "other axes": ("linear", {"x": X[:, :, None]}, None, "shape [7, 4, 1], the model takes"),
    # Of seven rows the last pair is one.
    "partial pair": ("pairs", {"x": X}, 2, "'x' has shape [7, 4] in batches of 2 and 1, the model takes [2, 4]"),
    "no sequence": ("takes-sequence", {"x": X}, 7, "'x' is float32, the model takes sequence(tensor(float32))"),
    "type of output": ("float8", {"x": X}, None, "output 'y' is float8e4m3fn"),
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_inputs_that_do_not_fit_are_named(runner_models: Path, tmp_path: Path, unfit: str) -> None:
    model, tensors, batch, words = UNFIT[unfit]
    write_tensors(tmp_path / "inputs", tensors, **({} if batch is None else {"batch": batch}))
    with pytest.raises(BadInput, match=re.escape(words)):
        Program("c", "python", runner_models).plan(tmp_path, model)


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_a_model_that_onnx_runtime_refuses_is_named(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "unknown", {"x": X})
    assert (run.code, run.record["cause"]) == (2, "bad-input"), run.stderr
    assert "NoSuchOperator" in run.record["message"]
    assert run.stderr.splitlines()[-1].startswith(f"{program.runtime}: ")


def _is_other(raw: bytes) -> dict[str, tuple[bytes, str]]:
    """Return plans that a program refuses, and words of its line."""
    return {
        "no plan": (b"no plan at all, but a text that is as long as a header" * 9, "TRANSECT"),
        "nothing": (b"", "plan"),
        "cut": (raw[:-1], str(len(raw))),
        "cut within the header": (raw[:100], str(len(raw))),
        "longer": (raw + b"\0", str(len(raw))),
        "other version": (raw[:12] + (2).to_bytes(4, "little") + raw[16:], "version 2"),
        "other byte order": (raw[:8] + raw[8:12][::-1] + raw[12:], "byte order"),
    }


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_a_plan_of_another_kind_is_refused_in_one_line(program: Program, tmp_path: Path) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    command = start_command(program.runtime, program.python, program.plan(tmp_path, "linear"))
    path = tmp_path / PLAN
    raw = path.read_bytes()
    for what, (spoilt, words) in _is_other(raw).items():
        path.write_bytes(spoilt)
        with pytest.raises(BadInput, match=words):
            read_plan(path)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, (what, done.stderr)
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"{program.runtime}: {path}: ") and words in line, (what, line)
        assert not (tmp_path / RESULT).exists()
    path.unlink()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1) and str(path) in done.stderr


@pytest.mark.parametrize("batch", [2, 7])
@pytest.mark.parametrize("program", MAX_COUNT, indirect=True)
def test_outputs_without_the_rows_of_the_batch_are_named(program: Program, tmp_path: Path, batch: int) -> None:
    run = program.latency(tmp_path, "transposed", {"x": X}, batch=batch)
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert re.search(rf"'y' has shape \[4(, |,| ){batch}\]", run.record["message"])


@pytest.mark.parametrize("program", [*MAX_COUNT, "python", "kotlin"], indirect=True)
def test_batches_of_several_widths_are_not_joined(program: Program, tmp_path: Path) -> None:
    # In all as many numbers as batches of two columns.
    x = np.repeat(np.array([[2], [1], [3]], np.float32), 2, axis=0)
    run = program.latency(tmp_path, "ragged", {"x": x}, batch=2)
    assert (run.code, run.record["cause"]) == (2, "bad-input"), run.record
    assert re.search(r"'y' has shape \[2(, |,| )1\]", run.record["message"])


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_what_onnx_runtime_refuses_while_it_runs_is_a_crash(program: Program, tmp_path: Path) -> None:
    run = program.latency(tmp_path, "fails", {"x": X[:3]})
    assert (run.code, run.record["cause"]) == (1, "crash")
    assert "Reshape" in run.record["message"]


@pytest.mark.env
def test_a_device_that_the_driver_does_not_show_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    # As in a container on a host with devices that was given none.
    monkeypatch.setattr(_cuda, "_DRIVER", tmp_path)
    monkeypatch.setattr(_cuda, "_has_device", _cuda._has_device.__wrapped__)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4711")
    assert no_cuda_reason() == "no CUDA device"


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_provider_that_is_not_there_is_skipped(program: Program, tmp_path: Path) -> None:
    provider = "webgpu" if program.runtime == "browser" else "cuda"
    if provider == "cuda" and no_cuda_reason() is None:
        pytest.skip("this machine has a CUDA device")
    run = program.latency(tmp_path, "linear", {"x": X}, provider=provider)
    if run.code == 0 and provider == "webgpu":
        pytest.skip("this machine has WebGPU")
    assert (run.code, run.record["status"]) == (3, "skipped"), run.stderr
    assert run.record["reason"] in run.stderr
    assert "run_ns" not in run.record


@pytest.mark.parametrize("program", [*NATIVE, "java"], indirect=True)
def test_library_that_is_none_is_named(program: Program, tmp_path: Path) -> None:
    library = tmp_path / "libonnxruntime.so"
    library.write_bytes(b"no library")
    write_tensors(tmp_path / "inputs", {"x": X})
    plan = program.plan(tmp_path, "linear")
    plan.add(Entry(role=Role.LIBRARY, text=str(library)))
    run = program.start(plan, tmp_path)
    assert (run.code, run.record["cause"]) == (1, "missing-dependency"), run.stderr
    assert library.name in run.record["message"]
