"""Cells that were not measured side by side: a verdict on them is not confirmed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from factories import infer_cell, make_record
from transect.analysis.groups import group_records
from transect.analysis.side_by_side import apart
from transect.domain.record import Record

LATENCIES = {"a": 1.0, "b": 1.5}
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def served(runtime: str, repeat: int, hours: float | None, processor: str | None) -> Record:
    began = "" if hours is None else (BEGAN + timedelta(hours=hours, minutes=repeat)).isoformat()
    latency = LATENCIES[runtime] * (1 + repeat / 1000)
    return make_record(
        infer_cell(runtime, repeat, exporter="dynamo"),
        {"latency": latency},
        started=began,
        ended=began,
        provenance={} if processor is None else {"cpu_model": processor},
    )


Ran = tuple[str | None, float | None]


def told_of(a: list[Ran], b: list[Ran]) -> str:
    """What `apart` says of two groups, whose runs are given as processor and hour."""
    return apart(
        group_records(
            served(runtime, n, hour, processor)
            for runtime, runs in (("a", a), ("b", b))
            for n, (processor, hour) in enumerate(runs)
        )
    )


X, Y, WEEK = "X", "Y", 168.0


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([(X, 0)] * 4 + [(Y, 0)], [(X, 0)] + [(Y, 0)] * 4, "60 % measured on different processors"),
        ([(X, 0)] * 3 + [(Y, 0)] * 3, [(X, 0)] * 2 + [(Y, 0)] * 2, ""),
        ([(X, 0), (X, WEEK)] * 2, [(X, 0), (X, WEEK)], ""),
        # Each processor had a day of its own for each group.
        ([(X, 0), (Y, WEEK)] * 2, [(Y, 0), (X, WEEK)] * 2, "on other days on each processor"),
        # One of five is trimmed from the middle; of three nothing is.
        ([(X, 0)] + [(X, WEEK)] * 4, [(X, WEEK)] * 5, ""),
        ([(X, 0)] + [(X, WEEK)] * 2, [(X, WEEK)] * 3, "33 % measured more than 12 h apart"),
        # A run that does not tell its processor, or its time, hides no other's.
        ([(X, 0)] * 4 + [(None, 0)], [(Y, 0)] * 5, "different processors"),
        ([(None, 0)] * 5, [(Y, 0)] * 5, ""),
        ([(X, 0)] * 4 + [(X, None)], [(X, WEEK)] * 5, "measured 168 h apart"),
        ([(X, None)] * 5, [(X, WEEK)] * 5, ""),
        # More repeats of one side in the same hours are no other day.
        ([(X, n / 4) for n in range(8)], [(X, 0), (X, 0.3), (X, 0.6)], ""),
    ],
)
def test_runs_have_counterparts_by_time_and_processor(a: list[Ran], b: list[Ran], reason: str) -> None:
    for first, second in ((a, b), (b, a)):
        found = told_of(first, second)
        assert reason in found and bool(found) == bool(reason)


def test_another_gpu_is_another_processor_where_the_cells_run_on_it() -> None:
    def made(runtime: str, n: int, provider: str) -> Record:
        record = served(runtime, n, 0.0, X)
        cell = record.cell.changed(provider=provider)
        gpu = {"name": f"GPU {runtime}", "sm_clock_mhz": n}
        provenance = {"cpu_model": X, "gpus": [gpu]}
        return record.model_copy(update={"cell": cell, "cell_id": cell.id, "provenance": provenance})

    for provider, reason in (("cuda", "different processors"), ("cpu", "")):
        found = apart(group_records(made(name, n, provider) for name in "ab" for n in range(3)))
        assert reason in found and bool(found) == bool(reason)
