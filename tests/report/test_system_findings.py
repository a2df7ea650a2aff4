"""Which of two systems is faster, by logs that were read: said where they ran alike, with the confidence that the runs give."""

from __future__ import annotations

from typing import Any

from said_of_records import prose

from factories import ingest_record
from result_runs import noisy, stream_run
from transect.domain.record import Record


def told(runs: dict[str, dict[str, Any]]) -> Record:
    return ingest_record(*({"file": f"/logs/{name}", **run} for name, run in runs.items()))


def runs_of(system: str, rate: float, seed: int, amount: int = 4, **how: Any) -> dict[str, Any]:
    return {f"{system}/2026-08-{n + 1:02}.out": stream_run(r, **how) for n, r in enumerate(noisy(rate, seed, amount))}


def by_days(days: str) -> dict[str, dict[str, Any]]:
    runs = runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2)
    return {name.replace("2026-08-", days): run for name, run in runs.items()}


APART = by_days("2026-08-")
LOST = runs_of("alpha", 9e9, 5, amount=6, status="failed", reason="killed")
SETS = {
    "a faster one": APART,
    "alike": runs_of("alpha", 1000, 1) | runs_of("beta", 1003, 2),
    "one run each": runs_of("alpha", 1000, 1, 1) | runs_of("beta", 700, 2, 1),
    "two runs each": runs_of("alpha", 1000, 1, 2) | runs_of("beta", 700, 2, 2),
    "of one day": by_days("2026-08-09-"),
    "other settings": runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2, array_size=5),
    "no settings": {name: run | {"parameters": {}} for name, run in APART.items()},
    "lost runs": LOST | {name.replace("alpha/", "alpha/again/"): run for name, run in APART.items()},
    # Refused runs and logs of no system win nothing.
    "refused": runs_of("alpha", 1000, 1) | runs_of("beta", 9e9, 2, status="invalid", reason="contradicted"),
    "no system": {f"stream-{n}.out": stream_run(n + 1) for n in range(4)},
}


def test_prose(snapshot: Any) -> None:
    assert prose({name: [told(runs)] for name, runs in SETS.items()}, "system") == snapshot
