"""Which of two systems is faster, by logs that were read: said where they ran alike, with the confidence that the runs give."""

from __future__ import annotations

from typing import Any

import pytest
from said_of_records import findings

from factories import ingest_record
from result_runs import noisy, stream_run
from transect.analysis.comparisons import Confidence
from transect.report.findings.finding import Finding


def said(runs: dict[str, dict[str, Any]]) -> list[Finding]:
    return findings(ingest_record(*({"file": f"/logs/{name}", **run} for name, run in runs.items()))).get("system", [])


def runs_of(system: str, rate: float, seed: int, amount: int = 4, **how: Any) -> dict[str, Any]:
    return {f"{system}/2026-08-{n + 1:02}.out": stream_run(r, **how) for n, r in enumerate(noisy(rate, seed, amount))}


def test_a_faster_system_is_named_with_the_factor_and_is_sure_by_its_runs():
    (told,) = said(runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2))
    assert told.confidence is Confidence.CONFIRMED and len(told.comparisons) == 1
    assert "alpha is 1.2" in told.claim and "times as fast as beta" in told.claim
    assert "array_size 10000000" in told.evidence


@pytest.mark.parametrize(
    ("runs", "confidence"),
    [
        (runs_of("alpha", 1000, 1) | runs_of("beta", 1003, 2), Confidence.INCONCLUSIVE),
        (runs_of("alpha", 1000, 1, 1) | runs_of("beta", 700, 2, 1), Confidence.INCONCLUSIVE),
        (runs_of("alpha", 1000, 1, 2) | runs_of("beta", 700, 2, 2), Confidence.PROVISIONAL),
    ],
    ids=["alike", "one run each", "two runs each"],
)
def test_what_the_runs_cannot_tell_is_not_said(runs, confidence):
    (told,) = said(runs)
    assert told.confidence is confidence


def test_runs_of_one_day_do_not_tell_how_a_system_is_from_day_to_day():
    runs = runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2)
    (told,) = said({name.replace("2026-08-", "2026-08-09-"): run for name, run in runs.items()})
    assert told.confidence is Confidence.PROVISIONAL and "1 and 1 days" in told.evidence


def test_other_settings_are_not_compared_and_named():
    (told,) = said(runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2, array_size=5))
    assert told.confidence is Confidence.INCONCLUSIVE and not told.comparisons
    assert "not compared" in told.claim and "array_size" in told.evidence


def test_logs_without_any_setting_are_compared_with_a_doubt():
    bare = {
        name: run | {"parameters": {}} for name, run in (runs_of("alpha", 1000, 1) | runs_of("beta", 800, 2)).items()
    }
    (told,) = said(bare)
    assert told.confidence is Confidence.PROVISIONAL and "do not tell all settings" in told.evidence


def test_refused_runs_and_logs_of_no_system_win_nothing():
    bad = runs_of("beta", 9e9, 2, status="invalid", reason="contradicted")
    assert said(runs_of("alpha", 1000, 1) | bad) == []
    assert said({f"stream-{n}.out": stream_run(n + 1) for n in range(4)}) == []
