"""What the verdict may and may not say."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import make_record
from said_of_records import Made, findings, prose, rows

from factories import infer_cell, train_cell
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.engine.finding import Finding
from transect.report.engine.text import number
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer

TORCH, NUMPY = "PyTorch on one core", "numpy on one core"
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
    assert prose(trained, "fastest", "equality") == snapshot(name="training")
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
        # Restarts that pass take over where the run itself tells nothing any more.
        (blind(SHARP, "torch"), TORCH, CONFIRMED, []),
        (blind(SHARP, "numpy"), TORCH, CONFIRMED, []),
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
    assert found.decision is not None and len(found.contrasts) == 2
    assert len(found.decision.tied if equal else found.decision.unknown) == 2
    assert all((c.answer is Answer.SAME) is equal for c in found.contrasts) and found.confidence is confidence


MANY = [
    run for name, times in (("torch", [1.0, 1.01, 1.02]), ("numpy", [2.0, 2.01, 2.02])) for run in runs(name, times)
]


def test_a_number_of_a_cell_is_one_wherever_it_stands() -> None:
    # Seeds that only one has stay in its own time: the table of all cells has no other number.
    found = first("fastest", *COMMON)
    section = Made("frameworks", *COMMON)
    [row] = [row for row in section.table("w: time to") if row["Framework and strategy"].startswith("torch")]
    assert row["Time to quality (s)"] == "2" and "PyTorch on one core, 2 s" in found.text


def test_how_many_runs_missed_the_target_is_counted() -> None:
    missed = first("fastest", *runs("torch", [-1.0, -1.0, -1.0]), *runs("numpy", [-2.0, -2.0]))
    assert "none of 5 runs reached accuracy 0.9" in missed.text and "target missed in all 5 runs" in missed.evidence
    assert "target missed in 1 of 3 runs" in first("fastest", *MISSED).evidence
    assert "at least one run" not in missed.text + missed.evidence


def test_what_is_not_known_is_not_worded_as_no_difference() -> None:
    said = first("fastest", *LOUD).text
    assert "is not known" in said and "more runs a side" in said and "difference" not in said


def spread(name: str, waited: float, share: float, *, ranks: int = 1) -> list[Record]:
    """Three runs of which few slow steps hold most of the waiting: its median does not see them."""
    return [
        run.model_copy(
            update={
                "metrics": [
                    *(m for m in run.metrics if not m.name.startswith("communication")),
                    MetricValue.of("communication_time", waited),
                    MetricValue.of("communication_share", share),
                ]
            }
        )
        for run in runs(name, [1.0, 1.01, 1.02], ranks=ranks, strategy="mpi-allreduce" if ranks > 1 else "single")
    ]


def test_waiting_is_one_share_wherever_it_stands() -> None:
    records = [*spread("torch", 0.0, 0.0), *spread("torch", 0.0011, 0.25, ranks=2)]
    limit = first("limit", *records[3:])
    assert "waiting for messages 25 % of a step" in limit.evidence
    [row] = [r for r in rows(Made("speed", *records).chart("Waiting").table) if "2 ranks" in r["Cell"]]
    assert row["Waiting for messages"] == "25 %"
    # Beside one rank, a fourth of the step of 10.1 ms is lost in waiting, not the median's 1.1 ms.
    assert "+2.5 waiting" in first("distribution", *records).text


def test_an_interval_is_about_the_number_that_it_stands_beside() -> None:
    # A run of one side is far off, so that means and medians lie on different sides of 1.
    records = [*runs("torch", [1.0, 1.01, 1.02]), *runs("torch", [0.8, 0.81, 3.0], ranks=2, strategy="mpi-allreduce")]
    found = first("scaling", *records)
    [made] = found.contrasts
    gain = made.cost.inverse
    assert gain.low <= gain.value <= gain.high
    assert f"{number(gain.value)} times the speed of 1 rank ({made.cost.word} {number(gain.low)} to" in found.evidence
    assert found.confidence is INCONCLUSIVE and "is not known" in found.text


def test_where_nothing_compares_ways_to_more_ranks_none_is_the_winner() -> None:
    def two(name: str, factor: float) -> list[Record]:
        return runs(name, [factor, 1.01 * factor, 1.02 * factor], ranks=2, strategy="mpi-allreduce")

    # numpy gains twice as much over its own single rank, and is slower on two ranks than PyTorch on one.
    records = [
        *runs("torch", [1.0, 1.01, 1.02]),
        *runs("numpy", [8.0, 8.08, 8.16]),
        *two("torch", 0.8),
        *two("numpy", 4.0),
    ]
    found = first("scaling", *records)
    assert found.decision is not None and found.decision.winner == ""


def test_a_cell_is_not_compared_with_itself() -> None:
    for finding in findings(*MANY)["fastest"]:
        assert all(made.group is not made.base for made in finding.contrasts)
