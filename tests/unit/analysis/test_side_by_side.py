"""Cells that were not measured side by side: a verdict on them is not firm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from factories import infer_cell, make_record
from transect.analysis.comparisons import Sureness
from transect.analysis.contests import contests
from transect.analysis.groups import Floors, group_records
from transect.domain.record import Cause, Record, Status
from transect.planning.stage import STAGES

LATENCIES = {"a": 1.0, "b": 1.5}
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def served(runtime: str, repeat: int, hours: float, processor: str | None) -> Record:
    began = (BEGAN + timedelta(hours=hours, minutes=repeat)).isoformat()
    latency = LATENCIES[runtime] * (1 + repeat / 1000)
    return make_record(
        infer_cell(runtime, repeat, exporter="dynamo"), {"latency": latency}, started=began, ended=began,
        provenance={} if processor is None else {"cpu_model": processor},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("hours", "processors", "told"),
    [
        ([0, 0, 0, 0], ["X", "X"], ""),
        ([0, 0, 0, 0], [None, "X"], ""),
        ([2, 2, 2, 2], ["X", "X"], ""),
        ([48, 48, 48, 48], ["X", "X"], "measured 48 h apart"),
        # Its later repeats ran in turn with those of the other.
        ([-48, -48, 0, 0], ["X", "X"], ""),
        ([0, 0, 0, 0], ["X", "Y"], "different processors"),
    ],
)
def test_two_days_or_two_processors_are_not_firm(
    hours: list[float], processors: list[str | None], told: str
) -> None:
    groups = group_records(
        served(runtime, n, hours[n] if runtime == "b" else 0.0, processor)
        for runtime, processor in zip("ab", processors, strict=True)
        for n in range(4)
    )
    [(_, _, one)] = contests(groups, STAGES.get("infer").contest, Floors(groups))
    assert one.sureness is (Sureness.TENTATIVE if told else Sureness.FIRM)
    assert told in one.reason and ("apart" in one.reason or "processors" in one.reason) == bool(
        told
    )


@pytest.mark.parametrize(
    ("lost", "sureness"), [(0, Sureness.FIRM), (1, Sureness.FIRM), (2, Sureness.TENTATIVE)]
)
def test_what_more_repeats_failed_of_than_a_middle_leaves_out_is_not_firm(
    lost: int, sureness: Sureness
) -> None:
    made = [served(runtime, n, 0.0, None) for runtime in "ab" for n in range(6)]
    for n in range(6 - lost, 6):
        ended = {"status": Status.FAILED, "cause": Cause.TIMEOUT, "message": "", "metrics": []}
        made[n] = made[n].model_copy(update=ended)
    groups = group_records(made)
    [(_, _, one)] = contests(groups, STAGES.get("infer").contest, Floors(groups))
    assert one.sureness is sureness
    assert ("2 of 6 repeats" in one.reason) == (lost == 2)
