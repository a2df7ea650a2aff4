"""The runners in other languages than Python under load, and with many cases one after another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runner_program import BROWSER_AT_TIMES, EVERY, LINEAR, MAX_COUNT, Program, X

from transect.onnx_models.tensors import write_tensors
from transect.runtimes.plan_file import DTYPE_CODES, Role
from transect.runtimes.serving_plans import Case, cases_plan

PAIRS = {"sessions": 2, "max_seconds": 300}


@pytest.mark.parametrize("program", EVERY, indirect=True)
def test_load_serves_what_arrives_with_two_sessions(program: Program, tmp_path: Path) -> None:
    arrivals = [index * 300_000 for index in range(200)]
    run = program.load(tmp_path, arrivals, **PAIRS)
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
    run = program.load(tmp_path, np.zeros(20_000), sessions=2, max_seconds=0)
    assert run.code == 0, run.stderr
    assert run.record["stop_reason"] == "time-limit"
    assert len(run.record["start_ns"]) == len(run.record["end_ns"]) < run.record["arrivals"] == 20_000
    assert run.record["start_ns"] == sorted(run.record["start_ns"])


@pytest.mark.parametrize("program", BROWSER_AT_TIMES, indirect=True)
def test_load_tells_of_a_fault(program: Program, tmp_path: Path) -> None:
    run = program.load(tmp_path, np.zeros(4), "fails", sessions=2)
    assert (run.code, run.record["cause"]) == (1, "crash"), run.stderr
    assert "Reshape" in run.record["message"]


EMOJI = np.array([["\N{GRINNING FACE}"]], object)
# What a language cannot take or give is unsupported, by model, inputs and verdict.
ABSENT_IS_NOT = {"absent": ({"x": X}, "unsupported")}
OF_LANGUAGE = {
    "c": {"absent": ({"x": X}, "ok")},
    "cpp": {"absent": ({"x": X}, "ok")},
    "rust": ABSENT_IS_NOT,
    "go": ABSENT_IS_NOT,
    "javascript": {"gives-sequence": ({"x": X}, "unsupported")},
    "browser": {"gives-sequence": ({"x": X}, "unsupported")},
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
        "unknown": ("unknown", {"x": X}),
        **{model: (model, tensors) for model, (tensors, _) in special.items()},
        "again": ("linear", {"x": X}),
    }
    run, _ = program.cases(tmp_path, given)
    assert run.code == 0, run.stderr
    lines, names = run.lines(), list(given)
    assert [line["case"] for line in lines] == [i for i in range(len(names)) for _ in range(2)]
    assert {line["status"] for line in lines[::2]} == {"started"}
    verdicts = dict(zip(names, lines[1::2], strict=True))
    plain = {"good": "ok", "fails": "failed", "unknown": "failed", "again": "ok"}
    wanted = plain | {model: status for model, (_, status) in special.items()}
    assert {name: line["status"] for name, line in verdicts.items()} == wanted
    # In ONNX Runtime's words.
    assert "Reshape" in verdicts["fails"]["message"]
    assert "NoSuchOperator" in verdicts["unknown"]["message"]
    assert all(line.get("message") or line["status"] == "ok" for line in verdicts.values())
    assert verdicts["again"]["outputs"] == [[DTYPE_CODES["float32"], [7, 3]]]
    written = np.fromfile(tmp_path / "again-outputs" / "output-0.bin", "<f4").reshape(7, 3)
    assert written == pytest.approx(LINEAR, abs=1e-5)
    # What is run again is appended.
    last = len(names) - 1
    more = program.cases(tmp_path, given, last)[0].lines()
    assert more[: len(lines)] == lines
    assert [(line["case"], line["status"]) for line in more[len(lines) :]] == [(last, "started"), (last, "ok")]


def test_cases_that_cannot_be_asked_for_are_refused_and_the_others_run(runner_models: Path, tmp_path: Path) -> None:
    cases = []
    given = {
        "good": ("linear", X),
        "gone": ("no-such-model", X),
        "other": ("linear", X.astype(np.int64)),
        "float8": ("float8", X),
        "again": ("linear", X),
    }
    for name, (model, x) in given.items():
        inputs = write_tensors(tmp_path / name, {"x": x}).parent
        cases.append(Case(name=name, model=runner_models / f"{model}.onnx", inputs=inputs, outputs=tmp_path / "o"))
    plan, refused = cases_plan(cases, provider="cpu", options={}, out=tmp_path)
    assert [(entry.group, entry.name) for entry in plan.of(Role.MODEL)] == [(0, "good"), (1, "again")]
    assert [entry.group for entry in plan.of(Role.INPUT)] == [0, 1]
    words = {"gone": "no-such-model.onnx", "other": "int64", "float8": "float8e4m3fn"}
    assert refused.keys() == words.keys()
    assert all(word in refused[name] for name, word in words.items())
