"""The runners in C, C++, Rust and Go under load, and with many cases one after another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_program import ABSENT, NATIVE, Program, X, case

from transect.onnx_models.tensors import read_tensors, write_tensors


@pytest.fixture(scope="module", params=NATIVE)
def program(request: pytest.FixtureRequest, native_models: Path) -> Program:
    return Program.of(request.param, native_models)


def test_type_that_the_contract_lacks_is_unsupported(program: Program, tmp_path: Path) -> None:
    code, record, _ = program.latency(tmp_path, "float8", {"x": X})
    assert (code, record["cause"]) == (2, "bad-input")
    assert "output" in record["message"]
    cases = [case(tmp_path, "float8", program.models / "float8.onnx", {"x": X})]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "record.json").unlink()
    done = program.start(tmp_path, "--mode", "cases", "--cases", tmp_path / "cases.json")
    assert done.returncode == 0, done.stderr
    last = json.loads((tmp_path / "record.json").read_text().splitlines()[-1])
    assert (last["case"], last["status"]) == (0, "unsupported")


def _load(program: Program, folder: Path, arrivals: np.ndarray, *more: Any) -> dict[str, Any]:
    write_tensors(folder / "inputs", {"x": X}, batch=2)
    arrivals.astype("<i8").tofile(folder / "arrivals.bin")
    done = program.start(
        folder, *program.paths(folder, "relu"), "--mode", "load", "--arrivals", folder / "arrivals.bin", *more
    )
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
    done = program.start(
        tmp_path, *program.paths(tmp_path, "relu"), "--mode", "load", "--arrivals", tmp_path / "arrivals.bin"
    )
    assert done.returncode == 2, done.stderr
    assert "arrivals.bin" in done.stderr


def test_cases_go_on_after_one_that_fails_and_from_where_they_are_told(program: Program, tmp_path: Path) -> None:
    models = {name: program.models / f"{name}.onnx" for name in ("relu", "fails", "absent")}
    cases = [
        case(tmp_path, "good", models["relu"], {"x": X}),
        case(tmp_path, "fails", models["fails"], {"x": X[:3]}),
        case(tmp_path, "gone", tmp_path / "gone.onnx", {"x": X}),
        case(tmp_path, "absent", models["absent"], {"x": X}),
        case(tmp_path, "other", models["relu"], {"x": X.astype(np.int64)}),
        case(tmp_path, "again", models["relu"], {"x": X + 1}),
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
        "good": "ok",
        "fails": "failed",
        "gone": "failed",
        "absent": ABSENT[program.name],
        "other": "failed",
        "again": "ok",
    }
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
def test_list_of_cases_that_is_none_is_bad_input(program: Program, tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "cases.json").write_text(content)
    done = program.start(tmp_path, "--mode", "cases", "--cases", tmp_path / "cases.json")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{program.name}: ")
    assert "cases.json" in done.stderr
    assert not (tmp_path / "record.json").exists()
