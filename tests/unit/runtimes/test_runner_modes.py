"""The runners in other languages than Python under load, and with many cases one after another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runner_program import BROWSER_AT_TIMES, EVERY, LINEAR, MAX_COUNT, Program, X

from transect.onnx_models.tensors import write_tensors

PAIRS = ("--sessions", "2", "--max-seconds", "300")


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_load_serves_what_arrives_with_two_sessions(program: Program, tmp_path: Path) -> None:
    arrivals = [index * 300_000 for index in range(200)]
    run = program.load(tmp_path, arrivals, *PAIRS)
    assert run.code == 0, run.stderr
    assert run.outputs()["y"] == pytest.approx(LINEAR, abs=1e-5)
    record = run.record
    assert (record["mode"], record["sessions"], record["arrivals"]) == ("load", 2, 200)
    assert record["stop_reason"] == "all-served"
    start, end = record["start_ns"], record["end_ns"]
    assert len(start) == len(end) == 200
    assert all(a <= s <= e for a, s, e in zip(arrivals, start, end, strict=True))
    assert record["outputs"]["rows"] == 7
    assert "run_ns" not in record


@pytest.mark.parametrize("program", MAX_COUNT, indirect=True)
def test_load_leaves_unserved_what_is_not_begun_in_time(program: Program, tmp_path: Path) -> None:
    # All at once, and no time: the first ones are taken, and no list of thousands is.
    run = program.load(tmp_path, np.zeros(20_000), "--sessions", "2", "--max-seconds", "0")
    assert run.code == 0, run.stderr
    assert run.record["stop_reason"] == "time-limit"
    assert len(run.record["start_ns"]) == len(run.record["end_ns"]) < run.record["arrivals"] == 20_000
    assert run.record["start_ns"] == sorted(run.record["start_ns"])


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_load_tells_of_a_fault_in_a_worker(program: Program, tmp_path: Path) -> None:
    write_tensors(tmp_path / "inputs", {"x": X})
    np.zeros(4, "<i8").tofile(tmp_path / "arrivals.bin")
    more = ("--mode", "load", "--arrivals", tmp_path / "arrivals.bin", "--sessions", "2")
    run = program.start(tmp_path, *program.paths(tmp_path, "pairs"), *more)
    assert (run.code, run.record["cause"]) == (2, "bad-input")
    assert "[2,4]" in run.record["message"]


EMOJI = np.array([["\N{GRINNING FACE}"]], object)
# What a language cannot take or give is unsupported, by model, inputs and verdict.
ABSENT_IS_THERE = {"absent": ({"x": X}, "ok"), "float8": ({"x": X}, "unsupported")}
ABSENT_IS_NOT = {"absent": ({"x": X}, "unsupported"), "float8": ({"x": X}, "unsupported")}
NO_SEQUENCE = {"gives-sequence": ({"x": X}, "unsupported")}
OF_LANGUAGE = {
    "c": ABSENT_IS_THERE,
    "cpp": ABSENT_IS_THERE,
    "rust": ABSENT_IS_NOT,
    "go": ABSENT_IS_NOT,
    "javascript": NO_SEQUENCE,
    "browser": NO_SEQUENCE,
    "java": {
        "identity-uint32": ({"x": np.array([[1, 2]], np.uint32)}, "unsupported"),
        "identity-string": ({"x": EMOJI}, "unsupported"),
        "constant-text": ({}, "unsupported"),
    },
}


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_cases_go_on_after_one_that_fails_and_from_where_they_are_told(program: Program, tmp_path: Path) -> None:
    special = OF_LANGUAGE[program.runtime]
    given = {
        "good": ("linear", {"x": X}),
        "fails": ("fails", {"x": X[:3]}),
        "gone": ("no-such-model", {"x": X}),
        "other": ("linear", {"x": X.astype(np.int64)}),
        **{model: (model, tensors) for model, (tensors, _) in special.items()},
        "again": ("linear", {"x": X}),
    }
    run = program.cases(tmp_path, given)
    assert run.code == 0, run.stderr
    lines, names = run.lines(), list(given)
    assert [line["case"] for line in lines] == [i for i in range(len(names)) for _ in range(2)]
    assert [line["name"] for line in lines[::2]] == names
    assert {line["status"] for line in lines[::2]} == {"started"}
    verdicts = {line["name"]: line for line in lines[1::2]}
    plain = {"good": "ok", "fails": "failed", "gone": "failed", "other": "failed", "again": "ok"}
    wanted = plain | {model: status for model, (_, status) in special.items()}
    assert {name: line["status"] for name, line in verdicts.items()} == wanted
    # In ONNX Runtime's words.
    assert "Reshape" in verdicts["fails"]["message"]
    assert "no-such-model.onnx" in verdicts["gone"]["message"]
    assert all(line.get("message") or line["status"] == "ok" for line in verdicts.values())
    assert (tmp_path / "again-outputs" / "header.json").exists()
    assert not (tmp_path / "fails-outputs" / "header.json").exists()
    # What is run again is appended.
    last = len(names) - 1
    more = program.cases(tmp_path, given, "--skip", str(last)).lines()
    assert more[: len(lines)] == lines
    assert [(line["case"], line["status"]) for line in more[len(lines) :]] == [(last, "started"), (last, "ok")]
