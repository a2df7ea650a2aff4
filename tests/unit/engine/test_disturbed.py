"""A disturbed measurement is repeated within its budget, and marked when it stays disturbed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cell_jobs import Noisy, OneLine, make_job
from transect.engine.attempts import Attempt
from transect.engine.run_cell import _measure
from transect.measure import guard

pytestmark = pytest.mark.env


def counted(journal: Path, measures: bool = True, code: int = 0) -> OneLine:
    return OneLine(f"open({str(journal)!r}, 'a').write('ran\\n'); raise SystemExit({code})", measures=measures)


@pytest.mark.parametrize(
    ("noisy", "limits", "runs", "disturbed"),
    [
        (0, {}, 1, False),
        (1, {}, 2, False),
        (9, {}, 3, True),
        (9, {"repeats_if_disturbed": 0}, 1, True),
        (9, {"repeat_seconds": 0}, 1, True),
    ],
)
def test_repeats_stay_within_the_budget(tmp_path, noisy, limits, runs, disturbed):
    journal, made = tmp_path / "journal", make_job(tmp_path, cell_limits={"repeats_if_disturbed": 2} | limits)
    result, _, seen = _measure(made, counted(journal), Attempt(made.folder), "f", Noisy(2 * noisy))
    assert journal.read_text().count("ran") == runs
    assert result.details["disturbed"] is disturbed is bool(result.details["disturbed_by"])
    assert result.details["disturbed_repeats"] == runs - 1
    assert json.dumps(seen), "what the guard saw goes into the record"


@pytest.mark.parametrize("how", [{"measures": False}, {"code": 3}])
def test_a_computation_or_a_failure_is_not_repeated(tmp_path, how):
    journal, made = tmp_path / "journal", make_job(tmp_path, cell_limits={"repeats_if_disturbed": 2})
    result, _, _ = _measure(made, counted(journal, **how), Attempt(made.folder), "f", Noisy(18))
    assert journal.read_text() == "ran\n" and result.details["disturbed"] is True


def test_what_was_seen_after_a_payload_serves_the_next_one_that_follows_at_once(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(guard.time, "monotonic", lambda: clock[0])
    watch = Noisy()
    first = watch.before()
    seen = watch.after()
    assert watch.before() is seen is not first and watch.looks == 2
    # Something lay between the two payloads.
    clock[0] += 1
    assert watch.before() is not seen and watch.looks == 3
    # A stranger who was seen is looked for again.
    watch = Noisy(1)
    watch.after()
    assert watch.before()[0]["foreign"] == [] and watch.looks == 2
