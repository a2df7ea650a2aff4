"""One entry starts every payload, and what a cell takes of another one's is told by its checksums."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from transect.domain.axes.data import DataCell
from transect.domain.errors import BadInput
from transect.domain.record import MetricValue, Record, Status, write_record
from transect.domain.takes import AllFiles, DataArrays, Metrics, Takes, own_repeat
from transect.engine.job import result_from
from transect.payloads.__main__ import main

pytestmark = pytest.mark.fast


def fine(spec, folders, out):
    return {"details": {"told": spec["told"], "run": spec["run"], "from": {r: str(f) for r, f in folders.items()}}}


def refused(spec, folders, out):
    return {"status": "failed", "cause": "wrong-result", "message": "apart"}


def raising(error: BaseException):
    def payload(spec, folders, out):
        raise error

    return payload


bad_input = raising(BadInput("no tickets"))
lacks = raising(ModuleNotFoundError("No module named 'gensim'"))
full = raising(MemoryError("no more"))
quits = raising(SystemExit(0))


def no_number(spec, folders, out):
    return {"details": {"loss": math.nan}}


def run(folder: Path, function: str, *more: str):
    (folder / "spec.json").write_text(json.dumps({"told": 3}))
    code = main([f"{__name__}:{function}", "--spec", str(folder / "spec.json"), "--out", str(folder), *more])
    file = folder / "result.json"
    return code, json.loads(file.read_text()) if file.exists() else None


def test_a_payload_is_told_its_spec_its_folders_and_what_is_known_only_then(tmp_path):
    code, found = run(tmp_path, "fine", "--take", "data=/a=b", "--take", "weights=/w", "--run", '{"salt": "x"}')
    assert (code, found["status"]) == (0, "ok")
    assert found["details"] == {"told": 3, "run": {"salt": "x"}, "from": {"data": "/a=b", "weights": "/w"}}


@pytest.mark.parametrize(
    ("function", "code", "cause", "message"),
    [
        ("refused", 0, "wrong-result", "apart"),
        ("bad_input", 1, "bad-input", "BadInput: no tickets"),
        ("lacks", 1, "missing-dependency", "ModuleNotFoundError: No module named 'gensim'"),
        ("full", 1, "out-of-memory", "MemoryError: no more"),
        ("quits", 1, "crash", "SystemExit: 0"),
        ("no_number", 1, "crash", "ValueError: Out of range float values"),
        ("not_there", 1, "crash", "AttributeError: module"),
    ],
)
def test_what_a_payload_raises_is_a_result_with_its_cause(tmp_path, function, code, cause, message):
    ended, found = run(tmp_path, function)
    assert (ended, found["status"], found["cause"]) == (code, "failed", cause)
    assert found["message"].startswith(message)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (
            {"metric": []},
            "result.metric: Extra inputs are not permitted\nexpected of result: status, cause, message, metr",
        ),
        ({"metrics": {"latency": 1}}, "result.metrics: Input should be a valid list"),
        ({"metrics": [{"name": "latency"}]}, "result.metrics.0.value: Field required"),
        ({"metrics": [{"name": "latancy", "value": 1}]}, "unknown metric 'latancy': did you mean 'latency'?"),
        ({"samples": {"latency": {"values": [1.0]}}}, "result.samples.latency.unit: Field required"),
        ({"samples": {"latency": [1.0]}}, "result.samples.latency: Input should be a valid dictionary"),
        ({"status": "fine"}, "result.status: Input should be 'ok', 'skipped' or 'failed'"),
    ],
)
def test_what_is_no_result_is_refused_by_its_key(left, expected):
    with pytest.raises(BadInput, match=re.escape(expected)):
        result_from({"status": "ok", **left})


def record(folder: Path, **more) -> Path:
    folder.mkdir(exist_ok=True)
    cell = DataCell(workload="iris-mlp")
    given = {
        "study": "s",
        "stage": "dataset",
        "cell": cell,
        "cell_id": cell.id,
        "status": Status.OK,
        "fingerprint": "f",
    }
    write_record(folder / "record.json", Record(**given | {"started": "", "ended": ""} | more))
    return folder


FILES = {"a.npy": "1", "states/one": "2", "states/two": "3", "b.npy": "4"}


@pytest.mark.parametrize(
    ("takes", "expected"),
    [
        (Takes("a.npy", "states"), ["a.npy 1", "one 2", "two 3"]),
        (Takes("b.npy", more=lambda spec: [spec["name"]]), ["b.npy 4", "two 3"]),
        (Takes("lost.npy"), ["lost.npy absent"]),
        (AllFiles(), ["a.npy 1", "b.npy 4", "one 2", "two 3"]),
        (DataArrays(own_repeat), ["data.npz 5", "start-1.npz 7"]),
        (DataArrays(), ["data.npz 5"]),
    ],
)
def test_what_is_read_of_another_cell_is_told_by_its_record(tmp_path, takes, expected):
    arrays = {"data.npz": "5", "start-0.npz": "6", "start-1.npz": "7"}
    folder = record(tmp_path / "other", files=FILES, details={"files": arrays})
    spec = {"name": "states/two", "cell": {"repeat": 1}}
    assert sorted(takes.checksums("other", folder, spec)) == sorted(expected)


@pytest.mark.parametrize("takes", [Takes("a.npy", details=["seed"]), AllFiles(details=lambda spec: ["seed"])])
def test_details_of_a_record_count_where_they_are_taken_and_no_others(tmp_path, takes):
    def of(name: str, **details):
        return takes.checksums("other", record(tmp_path / name, files=FILES, details=details), {})

    assert of("one", seed=1) == of("two", seed=1, payload_s=9) != of("three", seed=2)


def test_the_numbers_of_a_measured_cell_count_and_nothing_else_of_it(tmp_path):
    def of(name: str, value: float, **details):
        metrics = [MetricValue.of("latency", value)]
        return Metrics().checksums("messages", record(tmp_path / name, metrics=metrics, details=details), {})

    assert of("one", 1.0) == of("two", 1.0, host="b") != of("three", 2.0)


@pytest.mark.parametrize("takes", [Takes("a.npy"), AllFiles(), DataArrays(), Metrics()])
def test_a_cell_without_a_record_is_absent(tmp_path, takes):
    (found,) = takes.checksums("other", tmp_path / "nothing", {})
    assert found.endswith(" absent")
