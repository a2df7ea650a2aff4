"""Who answers first and who serves most: by which time, and with which right to say it."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import infer_record, runs
from said_of_records import Made, Sets, prose, ratios

from transect.domain.record import Record

TIMES = (1.0, 1.001, 1.002, 1.003, 1.004, 1.005)
IDENTITY = {"workload": "identity-1k", "exporter": "onnx"}
COMPARED = ("top1_agreement", "max_abs_difference", "max_rel_difference")


def inside(runtime: str, latency: float, parts: list[str], **more: Any) -> list[Record]:
    """Repeats of a language whose Run is the whole call."""
    return [
        infer_record(
            runtime,
            latency * t,
            n,
            details={"run_includes": parts},
            metrics={"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": latency * t},
            **more,
        )
        for n, t in enumerate(TIMES)
    ]


def without(records: list[Record], *names: str) -> list[Record]:
    return [
        record.model_copy(update={"metrics": [m for m in record.metrics if m.name not in names]}) for record in records
    ]


def calls() -> list[Record]:
    """Make calls of C, and of Rust that does as much inside of Run."""
    return [
        *runs("c", 1e-6, metrics={"end_to_end_time": 2e-6}, **IDENTITY),
        *runs("rust", 1.1e-6, metrics={"end_to_end_time": 4e-6}, **IDENTITY),
    ]


SETS = Sets(
    # Run alone: cpp 100 us and go 110 us; whole calls: cpp 120 us and go 110 us.
    whole_calls=lambda: [
        *(infer_record("cpp", 1e-4 * t, n, metrics={"end_to_end_time": 1.2e-4 * t}) for n, t in enumerate(TIMES)),
        *inside("go", 1.1e-4, ["copy"]),
    ],
    batches=lambda: [
        *runs("cpp", 1e-4),
        *inside("go", 1e-4, ["copy"]),
        *runs("cpp", 4e-4, batch=8),
        *inside("go", 8e-4, ["copy"], batch=8),
    ],
    same_parts=lambda: [*inside("python", 1e-4, ["bind"]), *inside("go", 2e-4, ["bind"])],
    run_alone=lambda: [*without(runs("cpp", 1e-4), "end_to_end_time"), *inside("go", 2e-4, ["copy"])],
    no_classes=lambda: without([*runs("cpp", 1e-4), *runs("c", 2e-4)], "top1_agreement"),
    not_compared=lambda: without([*runs("cpp", 1e-4), *runs("c", 2e-4)], *COMPARED),
    calls=lambda: [*calls(), *inside("go", 3e-6, ["bind", "copy"], **IDENTITY)],
)


def test_prose(snapshot: Any) -> None:
    sections = [Made("runtimes", *own).prose for own in (SETS["calls"], calls())]
    assert prose(SETS, "runtime", "call") | {"sections": sections} == snapshot


@pytest.mark.parametrize(
    ("name", "at", "winner", "reached", "ratio"),
    [
        ("whole_calls", 0, "go", "110 µs", 1.1 / 1.2),
        ("whole_calls", 1, "go", "9\u202f068", 1.2 / 1.1),
        # 8 samples in 4.3e-4 s, medians of six runs that differ by a thousandth each.
        ("batches", 1, "cpp", "18\u202f558", None),
        ("same_parts", 0, "python", "100 µs", 0.5),
        # Without whole calls Run alone is said to hold more.
        ("run_alone", 0, "cpp", "100 µs", 0.5),
    ],
)
def test_whole_calls_race_where_one_language_copies_inside_of_run(
    name: str, at: int, winner: str, reached: str, ratio: float | None
) -> None:
    found = SETS.findings(name)["runtime"][at]
    assert found.decision is not None and found.decision.winner.startswith(winner)
    assert reached in found.claim and reached in found.decision.value
    assert found.claim.startswith(f"{winner} ") and found.confidence == "confirmed"
    assert "Run includes" in found.evidence
    assert ("end to end" in found.claim) is (name in ("whole_calls", "batches"))
    if ratio:
        assert ratios(found) == pytest.approx([ratio], rel=1e-3)
