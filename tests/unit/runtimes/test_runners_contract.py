"""The contract's arithmetic and files, without a runtime."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transect.domain.axes.infer import InferCell
from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.runtimes import RUNTIMES
from transect.runtimes.infer import conclude
from transect.runtimes.plan_file import Entry, Level, Plan, Role, write_plan
from transect.runtimes.programs import PLAN, RESULT, run_record
from transect.runtimes.times import run_values


@pytest.mark.parametrize("name", RUNTIMES.names())
def test_every_runtime_says_that_there_is_no_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    cell = Cell.of(stage="infer", workload="digits-cnn", runtime=name, provider="cuda", batch=1)
    assert RUNTIMES.get(name).supports(cell)


@pytest.mark.parametrize("name", RUNTIMES.names())
def test_every_runtime_answers_for_other_stages_than_infer(name: str) -> None:
    asked = {"runtime": name, "provider": "cpu"}
    more = {"workload": "digits-cnn", "optimiser": "sgd", "steps": 8, "batch": 4}
    for cell in (Cell.of(stage="conformance", **asked), Cell.of(stage="retrain", **asked, **more)):
        assert isinstance(RUNTIMES.get(name).supports(cell), str | None)


@pytest.mark.parametrize("name", ["kotlin", "ort-training"])
def test_runtimes_without_level_cases_say_so(name: str) -> None:
    assert RUNTIMES.get(name).supports(Cell.of(stage="conformance", runtime=name, provider="cpu"))


@pytest.mark.parametrize(("runs", "has_p95"), [(399, False), (400, True)])
def test_p95_needs_four_hundred_samples(runs: int, has_p95: bool) -> None:
    series = list(range(1000, 1000 + runs))
    ones = [1] * runs
    record = {"run_ns": series, "bind_ns": ones, "copy_ns": ones, "session_ns": 3}
    found = run_values(record, 10)
    assert found["end_to_end_time"] == pytest.approx(found["latency"] + 2e-9)
    assert ("latency_p95" in found) is has_p95
    assert found["throughput"] == pytest.approx(10 / found["latency"])
    if has_p95:
        assert found["latency_p95"] == pytest.approx(1379e-9)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder with all that a program leaves of two calls; its plan is of a cell on `cpu`."""
    plan = Plan(level=Level.LATENCY, min_runs=2)
    texts = {Role.PROVIDER: "cpu", Role.OUT: str(tmp_path), Role.OUTPUTS: str(tmp_path)}
    plan.entries += [Entry(role=role, text=text) for role, text in texts.items()]
    plan.add(Entry(role=Role.OPTION, name="intra_op_num_threads", text="2"))
    plan.add(Entry(role=Role.OPTION, name="enable_mem_pattern", text="0"))
    write_plan(tmp_path / PLAN, plan)
    np.arange(6).tofile(tmp_path / "times.bin")
    (tmp_path / "status.txt").write_text("Name:\tx\nVmHWM:\t    2048 kB\nCpus_allowed_list:\t0-1\n")
    (tmp_path / "maps.txt").write_text("7f-80 r-xp 00000000 08:01 99                     /a b/libonnxruntime.so.1\n")
    return tmp_path


END = {"status": "ok", "runtime_version": "1", "provider_used": "cpu", "session_ns": 1, "outputs": []}


def test_a_record_is_made_of_the_plan_and_of_what_was_left(left: Path) -> None:
    # Such a mark ends a line for Python, and not for JSON.
    facts = {"message": "one\u2028line", "options_not_set": ["enable_mem_pattern"]}
    (left / RESULT).write_text(json.dumps(END | facts, ensure_ascii=False) + "\n")
    record = run_record("c", left, 0)
    assert (record["runner"], record["mode"], record["message"]) == ("c", "latency", "one\u2028line")
    assert (record["bind_ns"], record["run_ns"], record["copy_ns"]) == ([0, 3], [1, 4], [2, 5])
    assert (record["peak_memory_bytes"], record["cpus_allowed"]) == (2048 * 1024, "0-1")
    assert record["library_file"] == "/a b/libonnxruntime.so.1"
    assert record["session_options"] == {"intra_op_num_threads": 2}


@pytest.mark.parametrize(
    ("code", "text", "cause", "told"),
    [
        (-9, None, "killed", "9 without a readable record"),
        (-11, None, "crash", "11 without a readable record"),
        (1, "{half", "crash", "1 without a readable record"),
        (1, "{half\n", "crash", "1 without a readable record (JSONDecodeError"),
        (1, "[1]\n", "crash", "expected JSON objects, got [[1]]"),
        (1, json.dumps(END) + "\n", "crash", "1 after it wrote its record"),
        (0, "{}\n", "crash", "without a readable record"),
        (0, '{"status": "fine"}\n', "crash", "status 'fine', expected ok, failed, skipped"),
        (1, '{"status": "failed", "cause": "bad luck"}\n', "crash", "'bad luck' is not a valid Cause"),
    ],
)
def test_runner_without_a_good_record_failed(left: Path, code: int, text: str | None, cause: str, told: str) -> None:
    if text is not None:
        (left / RESULT).write_text(text)
    found = run_record("c", left, code)
    assert (found["status"], found["cause"]) == ("failed", cause)
    assert told in found["message"]


@pytest.mark.parametrize(
    ("changes", "times", "told"),
    [
        ({}, np.array([1, -1, 0]), "reported run_ns [-1], expected"),
        ({}, np.array([1, 2, 3, 4]), "times.bin: holds 32 bytes, expected rows of 24"),
        ({}, np.array([], np.int64), "lacks run_ns"),
        ({"session_ns": None}, np.arange(3), "lacks session_ns"),
        ({"provider_used": "cuda"}, np.arange(3), "ran on cuda, the cell asks for cpu"),
    ],
)
def test_what_lacks_what_the_contract_says_is_named(
    left: Path, changes: dict[str, Any], times: np.ndarray, told: str
) -> None:
    cell = InferCell(workload="digits-cnn", runtime="python", provider="cpu", batch=1)
    (left / RESULT).write_text(json.dumps(END | changes) + "\n")
    times.tofile(left / "times.bin")
    with pytest.raises(BadInput, match=re.escape(told)):
        conclude(cell, left, left, 0, python="python")
