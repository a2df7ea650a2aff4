"""What the verdict may and may not say."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import make_record
from said_of_records import findings, prose

from factories import infer_cell, train_cell
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.engine.finding import Finding
from transect.stats.comparisons import Confidence

TORCH, NUMPY = "torch · single · 1 rank", "numpy · single · 1 rank"
FAST, SLOW = [1 + i / 100 for i in range(6)], [2 + i / 100 for i in range(6)]


def first(kind: str, *records: Record) -> Finding:
    return findings(*records)[kind][0]


def runs(
    framework: str, times: list[float], *, ranks: int = 1, strategy: str = "single", **details: Any
) -> list[Record]:
    """Synthetic repeats of a training cell that reach the target in `times` seconds."""
    made = []
    for repeat, time in enumerate(times):
        cell = train_cell(framework, repeat, workload="w", strategy=strategy, ranks_per_node=ranks, batch=64)
        quality = {"metric": "accuracy", "target": 0.9, "reached": time > 0}
        metrics = {
            "samples_per_second": 1000 / abs(time),
            "step_time": abs(time) / 100,
            "compute_time": abs(time) / 200,
            "communication_time": 0.0,
            "input_time": 0.0,
            "accuracy": 0.93,
            "equality_ratio": 0.5,
        }
        if time > 0:
            metrics["time_to_quality"] = time
        details = {"quality": quality, "global_batch": 64, **details}
        made.append(make_record(cell, metrics, details=details))
    return made


def race(*times: list[float]) -> list[Record]:
    """Trainers a, b, c with these times."""
    return [run for name, values in zip("abcde", times, strict=False) for run in runs(name, values)]


CLEAR = [*runs("torch", [1.0, 1.01, 1.02]), *runs("numpy", [2.0, 2.01, 2.02])]
WITHIN = [*runs("torch", [1.0, 1.001, 1.002]), *runs("numpy", [1.01, 1.011, 1.012]), *runs("go", [3.0, 3.3, 3.1])]
SAME = race([1.0, 1.003, 1.006], [1.002, 1.0, 1.003], [1.001, 1.005, 1.004])
LOUD = race([1.0, 1.2, 1.1], [1.1, 1.0, 1.25], [1.05, 1.3, 1.0])
WRONG = [
    *runs("numpy", [2.0, 2.01, 2.02]),
    *(
        record.model_copy(update={"status": Status.FAILED, "cause": Cause.WRONG_RESULT})
        for record in runs("mxnet", [0.1, 0.1, 0.1])
    ),
    *(
        record.model_copy(
            update={
                "metrics": [
                    metric.model_copy(update={"value": 7.0}) if metric.name == "equality_ratio" else metric
                    for metric in record.metrics
                ]
            }
        )
        for record in runs("torch", [0.1, 0.1, 0.1])
    ),
]
MISSED = [*runs("torch", [1.0, -1.0, 1.0]), *runs("numpy", [2.0, 2.01, 2.02])]
NONE = runs("torch", [-1.0, -1.0])
CROWDED = [
    *runs("torch", [2.0, 2.01, 2.02]),
    *runs("torch", [0.5, 0.51, 0.52], ranks=8, strategy="ddp", over_subscribed=True),
]
SUPERLINEAR = [*runs("torch", [4.0, 4.01, 4.02]), *runs("torch", [1.0, 1.01], ranks=2, strategy="ddp")]
SHARP = [{"step": 40, "steps": 4, "ratio": 0.02, "sharp": True}]
DULL = [*SHARP, {"step": 80, "steps": 4, "ratio": 0.0, "sharp": False}]
ELSEWHERE = [
    *runs("torch", [1.0, 1.01, 1.02]),
    *(
        record.model_copy(update={"provenance": {**record.provenance, "host": "elsewhere"}})
        for record in runs("numpy", [2.0, 2.01, 2.02])
    ),
]
# The third start takes twice the epochs for everybody, so that the ranges overlap.
STARTS = [
    *runs("torch", [1.0, 1.01, 2.02]),
    *runs("numpy", [1.5, 1.52, 3.0]),
    *race(*([t, 1.01 * t, 2 * t] for t in (5, 6, 7))),
]
# The two later starts of torch take longer; numpy ran only the first.
COMMON = [*runs("torch", [1.0, 2.0, 2.0]), *runs("numpy", [1.5]), *race(*([t, 2 * t, 2 * t] for t in (5.0, 6.0, 7.0)))]


def blind(restarts: list[dict[str, Any]], *names: str) -> list[Record]:
    """Two trainers; the check of those named goes blind at step 30."""
    details = {"not_checkable_from": 30, "restarts": restarts}
    return [
        record
        for name, times in (("torch", FAST), ("numpy", SLOW))
        for record in runs(name, times, **(details if name in names else {}))
    ]


def restarted() -> list[Record]:
    records = [*runs("torch", [1.0, 1.01]), *runs("numpy", [2.0, 2.01])]
    records[0].metrics.append(MetricValue.of("restart_ratio", 1.5))
    return records


def export(difference: float, agreement: float) -> Record:
    cell = Cell.of(stage="export", workload="w", framework="torch", exporter="dynamo")
    metrics = {"max_abs_difference": difference, "top1_agreement": agreement}
    return make_record(cell, metrics, details={"tolerance": 1e-5})


def infer(runtime: str, latency: float, agreement: float = 1.0) -> list[Record]:
    """Three synthetic repeats of an inference cell."""
    return [
        make_record(
            infer_cell(runtime, repeat, workload="w", exporter="dynamo"),
            {"latency": latency * (1 + repeat / 1000), "throughput": 1 / latency, "top1_agreement": agreement},
        )
        for repeat in range(3)
    ]


SERVED = [*infer("rust", 1e-6, agreement=0.9), *infer("python", 2e-5), *infer("c", 4e-5)]


def test_prose(snapshot: Any) -> None:
    trained = {
        "a clear winner": CLEAR,
        "within the noise": WITHIN,
        "shown to be the same": SAME,
        "loud": LOUD,
        "wrong results": WRONG,
        "target missed once": MISSED,
        "target missed": NONE,
        "over-subscribed": CROWDED,
        "blind": blind([], "torch"),
        "blind alone": blind([], "torch")[:6],
        "blind with restarts": blind(SHARP, "torch"),
        "a restart that leaves": restarted(),
        "another host": ELSEWHERE,
        "long starts": STARTS,
        "starts that all ran": COMMON,
        "superlinear": SUPERLINEAR,
    }
    exports = {"right": [export(1e-7, 1.0)], "far": [export(1e-2, 1.0)], "turned": [export(1e-7, 0.98)]}
    assert prose(trained, "fastest", "equality", "suspect") == snapshot(name="training")
    assert prose(exports, "export") == snapshot(name="exports")
    assert prose({"served": SERVED}, "runtime") == snapshot(name="runtimes")
    assert prose({"nothing": []}, "coverage") == snapshot(name="coverage")


CONFIRMED, PROVISIONAL, INCONCLUSIVE = Confidence.CONFIRMED, Confidence.PROVISIONAL, Confidence.INCONCLUSIVE


@pytest.mark.parametrize(
    ("records", "winner", "confidence", "left_out"),
    [
        (CLEAR, TORCH, CONFIRMED, []),
        ([*runs("torch", FAST[:2]), *runs("numpy", SLOW[:2])], TORCH, PROVISIONAL, []),
        ([*runs("torch", FAST, disturbed=True), *runs("numpy", SLOW)], TORCH, PROVISIONAL, []),
        # One that nobody else is fit to be compared with is provisional.
        # A wrong result never wins, however it is marked, nor do ranks that share cores.
        (WRONG, NUMPY, PROVISIONAL, ["wrong result", "wrong result"]),
        (restarted(), NUMPY, PROVISIONAL, ["wrong result"]),
        (CROWDED, TORCH, PROVISIONAL, ["cores"]),
        (MISSED, NUMPY, PROVISIONAL, ["target"]),
        # What goes blind before its target is much faster, as a trainer that no longer updates would be.
        (blind([], "torch"), NUMPY, PROVISIONAL, ["checkable"]),
        (blind(DULL, "torch"), NUMPY, PROVISIONAL, ["checkable"]),
        (blind(SHARP, "torch"), TORCH, PROVISIONAL, []),
        (blind(SHARP, "numpy"), TORCH, PROVISIONAL, []),
        # Seed by seed, over the starts that all ran.
        (STARTS, TORCH, CONFIRMED, []),
        (COMMON, TORCH, PROVISIONAL, []),
    ],
)
def test_who_wins_and_how_surely(
    records: list[Record], winner: str, confidence: Confidence, left_out: list[str]
) -> None:
    found = first("fastest", *records)
    assert found.decision is not None and (found.decision.winner, found.confidence) == (winner, confidence)
    reasons = [left.why for left in found.decision.left_out]
    assert len(reasons) == len(left_out)
    assert all(words in why for words, why in zip(left_out, reasons, strict=True)), reasons


@pytest.mark.parametrize(("records", "equal", "confidence"), [(SAME, True, CONFIRMED), (LOUD, False, INCONCLUSIVE)])
def test_what_is_proved_the_same_is_confirmed_and_what_is_not_is_open(
    records: list[Record], equal: bool, confidence: Confidence
) -> None:
    found = first("fastest", *records)
    assert found.decision is not None and found.decision.equal is equal
    assert len(found.decision.tied) == 2 == len(found.comparisons)
    assert all(c.equal is equal for c in found.comparisons) and found.confidence is confidence
