"""The runners in JavaScript under load, and with many cases one after another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runner_program import BROWSER_AT_TIMES, Program

from transect.onnx_models.tensors import write_header, write_tensors

X = np.arange(28, dtype=np.float32).reshape(7, 4) - 9
# As javascript_models.py makes it.
EXPECTED = np.maximum(X @ (np.arange(12, dtype=np.float32).reshape(4, 3) / 7), 0)
CASE_KEYS = ("name", "model", "inputs", "outputs")


@pytest.fixture(scope="module", params=["javascript", "browser"])
def program(request: pytest.FixtureRequest, javascript_models: Path) -> Program:
    return Program.of(request.param, javascript_models)


def _load(program: Program, folder: Path, arrivals: list[int], *more: str) -> dict[str, Any]:
    np.array(arrivals, "<i8").tofile(folder / "arrivals.bin")
    write_tensors(folder / "inputs", {"x": X}, batch=2)
    paths = program.paths(folder, "linear")
    run = program.start(folder, *paths, "--mode", "load", "--arrivals", folder / "arrivals.bin", *more)
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(EXPECTED, abs=1e-5)
    return run.record


def test_load_serves_what_arrives_with_two_sessions(program: Program, tmp_path: Path) -> None:
    arrivals = [index * 500_000 for index in range(200)]
    record = _load(program, tmp_path, arrivals, "--sessions", "2", "--max-seconds", "300")
    assert (record["mode"], record["sessions"], record["arrivals"]) == ("load", 2, 200)
    assert record["stop_reason"] == "all-served"
    start, end = record["start_ns"], record["end_ns"]
    assert len(start) == len(end) == 200
    assert all(a <= s <= e for a, s, e in zip(arrivals, start, end, strict=True))
    assert record["outputs"]["rows"] == 7
    assert "run_ns" not in record


def test_load_leaves_unserved_what_is_not_begun_in_time(program: Program, tmp_path: Path) -> None:
    # All at once, and no time: the first ones are taken, and no list of thousands is.
    record = _load(program, tmp_path, [0] * 20_000, "--max-seconds", "0.001")
    assert record["stop_reason"] == "time-limit"
    assert len(record["start_ns"]) == len(record["end_ns"]) < 20_000
    assert record["start_ns"] == sorted(record["start_ns"])


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_load_tells_of_a_fault_in_a_worker(program: Program, tmp_path: Path) -> None:
    np.zeros(4, "<i8").tofile(tmp_path / "arrivals.bin")
    write_tensors(tmp_path / "inputs", {"x": X})
    paths = program.paths(tmp_path, "fixed")
    more = ("--mode", "load", "--arrivals", tmp_path / "arrivals.bin", "--sessions", "2")
    run = program.start(tmp_path, *paths, *more)
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "[2,4]" in run.record["message"]


def _cases(folder: Path, models: Path, names: list[str]) -> Path:
    write_tensors(folder / "inputs", {"x": X})
    cases = [
        dict(
            zip(
                CASE_KEYS,
                (name, str(models / f"{name}.onnx"), str(folder / "inputs"), str(folder / f"out-{index}")),
                strict=True,
            )
        )
        for index, name in enumerate(names)
    ]
    (folder / "cases.json").write_text(json.dumps(cases))
    return folder / "cases.json"


def test_cases_go_on_after_one_that_fails(program: Program, tmp_path: Path) -> None:
    names = ["linear", "gone", "reshape", "sequence", "types", "default"]
    cases = _cases(tmp_path, program.models, names)
    run = program.start(tmp_path, "--mode", "cases", "--cases", cases)
    assert run.code == 0, run.stderr
    lines = run.lines()
    assert [line["case"] for line in lines] == [i for i in range(6) for _ in range(2)]
    assert [line["status"] for line in lines[::2]] == ["started"] * 6
    verdicts = {line["name"]: line["status"] for line in lines[1::2]}
    assert verdicts == {
        "linear": "ok",
        "gone": "failed",
        "reshape": "failed",
        "sequence": "unsupported",
        "types": "failed",
        "default": "ok",
    }
    assert all(line["message"] for line in lines[1::2] if line["status"] != "ok")
    assert "Reshape" in lines[5]["message"]
    assert (tmp_path / "out-0" / "header.json").exists()
    assert not (tmp_path / "out-2").exists()


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_cases_are_skipped_and_the_record_is_appended_to(program: Program, tmp_path: Path) -> None:
    cases = _cases(tmp_path, program.models, ["linear", "linear", "linear"])
    (tmp_path / "record.json").write_text('{"case": 0, "name": "linear", "status": "started"}\n')
    run = program.start(tmp_path, "--mode", "cases", "--cases", cases, "--skip", "1")
    assert run.code == 0, run.stderr
    assert [line["case"] for line in run.lines()] == [0, 1, 1, 2, 2]
    assert not (tmp_path / "out-0").exists()


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_values_that_are_no_tensors_are_unsupported_as_inputs(program: Program, tmp_path: Path) -> None:
    cases = _cases(tmp_path, program.models, ["linear"])
    write_header(tmp_path / "inputs", [{"name": "x", "kind": "sequence(tensor(float))"}])
    run = program.start(tmp_path, "--mode", "cases", "--cases", cases)
    assert run.lines()[1]["status"] == "unsupported"
