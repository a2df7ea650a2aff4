"""Training runs as MLPerf's logs and in Deep500's metrics, read by our own parsers of both."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from make_records import HOSTILE

from factories import make_record, provenance, train_cell, write_records
from transect.domain.axes.retrain import RetrainCell
from transect.domain.cell import Cell
from transect.domain.record import Record, Samples, Status
from transect.hpc.base import Run, RunStatus
from transect.hpc.scan import Scanner
from transect.report.formats import REPORT_FORMATS, Contents
from transect.report.formats.deep500 import COLUMNS
from transect.report.made import make_all

EPOCHS, STEPS, BEGAN = 4, 5, "2026-01-02T03:04:05+00:00"


def training(folder: Path, repeat: int, scores: list[float], score: str = "accuracy", **more: object) -> Record:
    """Write a training of four epochs of a second each, whose target is 0.9, or 0.1 of an error."""
    target = 0.9 if score == "accuracy" else 0.1
    better = [i for i, one in enumerate(scores) if (one >= target if score == "accuracy" else one <= target)]
    metrics = {"startup_time": 2.0, "train_time": 4.0}
    if better:
        metrics["time_to_quality"] = better[0] + 1.25  # a quarter of a second to load data
    series = {
        score: (scores, "1"),
        "epoch_end": ([1.0, 2.0, 3.0, 4.0], "s"),
        "step_time": ([0.18] * EPOCHS * STEPS, "s"),
        "loss": ([0.5] * EPOCHS * STEPS, "1"),
    }
    record = make_record(
        train_cell(repeat=repeat),
        metrics,
        samples={name: Samples(unit=unit, values=v, count=len(v)) for name, (v, unit) in series.items()},
        details={
            "global_batch": 16,
            "quality": {"metric": score, "target": target, "reached": bool(better)},
            "layout": {"replicas": 2, "model_parts": 1, "micro_batches": 1},
        },
        parameters={"optimiser": "sgd", "learning_rate": 0.1, "momentum": 0.9},
        provenance=provenance("base", system={"name": HOSTILE}),
        **more,
    ).model_copy(update={"started": BEGAN})
    write_records(folder, record)
    return record


def data(folder: Path) -> None:
    cell = Cell.of(stage="data", workload="iris-mlp")
    details = {"train": 112, "test": 38, "seeds_of_repeats": [7, 8, 9]}
    write_records(folder, make_record(cell, details=details))


def contents(folder: Path, name: str) -> Contents:
    return REPORT_FORMATS.get(name).contents(make_all(folder, title="x", only=()))


def parsed(text: bytes) -> Run:
    (run,) = Scanner().scan(io.BytesIO(text), "log")
    return run


def logs(told: Contents) -> dict[str, bytes]:
    return {name: log for name, log in told.files.items() if name.endswith(".txt")}


def events(log: bytes) -> list[dict]:
    lines = log.decode().splitlines()
    assert all(line.startswith(":::MLLOG ") for line in lines)
    return [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]


def test_a_log_ends_where_the_target_is_reached_after_the_time_to_quality(tmp_path: Path) -> None:
    data(tmp_path)
    training(tmp_path, 1, [0.5, 0.8, 0.95, 0.97])
    ((name, log),) = logs(contents(tmp_path, "mlperf-logs")).items()
    assert name.startswith("results/iris-mlp.numpy.single") and name.endswith("/iris-mlp/result_1.txt")
    run = parsed(log)
    assert (run.status, run.benchmark, run.variant) == (RunStatus.OK, "mlperf-training", "iris-mlp")
    values = {one.name: one.value for one in run.metrics}
    assert values["time_to_train"] == pytest.approx(3.25)
    assert values["eval_accuracy"] == pytest.approx(0.95)
    told = events(log)
    assert {"namespace", "time_ms", "event_type", "key", "value", "metadata"} == set(told[0])
    assert all({"file", "lineno"} <= set(one["metadata"]) and one["metadata"]["lineno"] > 0 for one in told)
    times = [one["time_ms"] for one in told]
    assert times == sorted(times) and min(times) == 1767323045000
    by_key = {one["key"]: one for one in told}
    assert by_key["seed"]["value"] == 8 and by_key["train_samples"]["value"] == 112
    assert by_key["eval_samples"]["value"] == 38 and by_key["micro_batch_size"]["value"] == 8
    assert by_key["run_stop"]["metadata"]["status"] == "success"
    assert by_key["run_stop"]["metadata"]["epochs_of_the_record"] == EPOCHS
    kinds = [one["event_type"] for one in told if one["key"].endswith(("_start", "_stop"))]
    assert kinds.count("INTERVAL_START") == kinds.count("INTERVAL_END")


def test_an_error_is_better_the_lower_it_is(tmp_path: Path) -> None:
    training(tmp_path, 0, [0.5, 0.05, 0.2, 0.3], score="final_loss")
    [why] = contents(tmp_path, "deep500").left_out
    assert "has accuracies only" in why
    told = contents(tmp_path, "mlperf-logs")
    (log,) = logs(told).values()
    stop = events(log)[-1]
    assert (stop["metadata"]["status"], stop["metadata"]["epoch_num"]) == ("success", 2)
    (rules,) = [file for name, file in told.files.items() if name.endswith(".yaml")]
    assert b"<= 0.1" in rules


@pytest.mark.parametrize("name", ["mlperf-logs", "deep500"])
def test_what_cannot_be_told_is_named_with_its_reason(tmp_path: Path, name: str) -> None:
    training(tmp_path, 0, [0.95] * 4)
    wrong = {"status": Status.FAILED, "cause": "wrong-result", "message": "loss left"}
    training(tmp_path, 1, [0.95] * 4, **wrong)
    training(tmp_path, 3, [0.95] * 3)
    cell = RetrainCell(workload="iris-mlp", runtime="rust", provider="cpu", optimiser="sgd", steps=8, batch=4)
    write_records(tmp_path, make_record(cell))
    told = contents(tmp_path, name)
    assert len([file for file in told.files if file.endswith(".txt")]) == 1
    assert len(told.left_out) == 3
    reasons = " ".join(told.left_out)
    assert "failed, wrong-result: loss left" in reasons
    assert "4 epochs" in reasons and "3 scores" in reasons


def test_deep500_has_its_own_columns_and_words(tmp_path: Path) -> None:
    data(tmp_path)
    record = training(tmp_path, 0, [0.5, 0.8, 0.95, 0.9])
    files = contents(tmp_path, "deep500").files
    folder = f"train/{record.cell_id}"
    assert set(files) == {
        f"{folder}/{name}" for name in ("training_stats_train.csv", "training_stats_test.csv", "metrics.txt")
    }
    tests = list(csv.DictReader(io.StringIO(files[f"{folder}/training_stats_test.csv"].decode())))
    assert tuple(tests[0]) == COLUMNS
    assert [float(row["accuracy"]) for row in tests] == pytest.approx([50, 80, 95, 90])
    assert [int(row["wrong"]) for row in tests] == [19, 8, 2, 4]
    assert {row["avg_loss"] for row in tests} == {""}, "nobody measures it"
    trained = list(csv.DictReader(io.StringIO(files[f"{folder}/training_stats_train.csv"].decode())))
    assert {row["accuracy"] for row in trained} == {"-1.0"}, "Deep500's own never measured"
    assert [float(row["time_used"]) for row in trained] == pytest.approx([0.9] * 4)
    assert float(trained[-1]["total_used_time"]) == pytest.approx(3.6)
    assert [float(row["start_time"]) for row in trained] == pytest.approx([1767323047 + i for i in range(4)])
    run = parsed(files[f"{folder}/metrics.txt"])
    assert run.status is RunStatus.OK and run.benchmark == "deep500"
    values = {one.name: one.value for one in run.metrics}
    assert values == {"TestAccuracy": pytest.approx(90), "WallclockTime": pytest.approx(4000)}
    assert any("never measured" in one for one in run.warnings)
