"""`transect compare` where runs fail on both sides, and where nothing but the whole tells."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from factories import train_cell, write_records
from result_runs import START, noisy, run_record, write_planned, write_run
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Status


@pytest.fixture
def compared(transect: Any, tmp_path: Path) -> Any:
    """Return what compares the folders a and b of the test: its exit code and what it prints."""
    return lambda *options: transect("compare", tmp_path / "a", tmp_path / "b", *options)[:2]


def facts_of(compared: Any, *options: str) -> tuple[int, dict[str, Any]]:
    code, out = compared("--format", "json", *options)
    return code, json.loads(out)


def fail(folder: Path, name: str, repeats: int, day: int) -> None:
    """Let the first repeats of a cell have failed."""
    for repeat in range(repeats):
        at = START + timedelta(days=day, minutes=repeat)
        record = run_record(train_cell(name, repeat), {}, at=at, status=Status.FAILED, cause=Cause.CRASH)
        write_records(folder, record)


@pytest.mark.parametrize(
    ("base", "rival", "outcome", "confidence"),
    [
        (1, 5, "worse", "provisional"),
        (1, 3, "worse", "provisional"),
        (5, 2, "better", "provisional"),
        (0, 5, "worse", "confirmed"),
        (0, 1, "worse", "provisional"),
        (2, 2, None, None),
    ],
)
def test_that_more_repeats_fail_is_told_whatever_failed_before(tmp_path, compared, base, rival, outcome, confidence):
    for day, name in enumerate("ab"):
        write_run(tmp_path / name, {"torch": noisy(100, day), "jax": noisy(9, day + 5)}, day=day)
    fail(tmp_path / "a", "torch", base, 0)
    fail(tmp_path / "b", "torch", rival, 1)
    _, facts = facts_of(compared)
    ended = [line for line in facts["others"][0]["lines"] if line["role"] == "outcome"]
    assert [(line["outcome"], line["confidence"]) for line in ended] == ([(outcome, confidence)] if outcome else [])
    if outcome:
        assert f"{max(base, rival)} of 5 repeats failed" in ended[0]["reason"]


def test_what_cannot_be_checked_is_confirmed_worse_and_provisionally_better(tmp_path, compared):
    for day, (name, rates) in enumerate({"a": (100, 10), "b": (70, 14)}.items()):
        run = {"torch": noisy(rates[0], day), "jax": noisy(rates[1], day + 5)}
        blind = {"global_batch": 16, "not_checkable_from": 3}
        write_run(tmp_path / name, run, day=day, details=blind)
    code, facts = facts_of(compared)
    lines = {line["cell"].split(".")[1]: line for line in facts["others"][0]["lines"]}
    assert (code, lines["torch"]["outcome"], lines["torch"]["confidence"]) == (4, "worse", "confirmed")
    assert (lines["jax"]["outcome"], lines["jax"]["confidence"]) == ("better", "provisional")
    assert "reference" in lines["jax"]["reason"]


def test_what_is_worse_as_a_whole_is_in_the_outcome(tmp_path, compared):
    frameworks = [f"made{place}" for place in range(12)]
    for name, day, factor in (("a", 0, 1.0), ("b", 1, 0.95)):
        rates = {
            framework: noisy(factor * 100 * (place + 1), 100 * day + place, repeats=5, noise=0.05)
            for place, framework in enumerate(frameworks)
        }
        write_run(tmp_path / name, rates, day=day)
    code, out = compared("--badge", str(tmp_path / "badge.svg"))
    assert code == 5 and "1 whole stage worse" in out
    assert "1 whole stage worse" in (tmp_path / "badge.svg").read_text()
    assert compared("--provisional")[0] == 4


def test_no_output_takes_the_place_of_results(tmp_path, compared):
    for day, name in enumerate("ab"):
        write_run(tmp_path / name, {"torch": noisy(100, day)}, day=day)
    write_planned(tmp_path / "b", [train_cell("torch", repeat) for repeat in range(5)])
    before = (tmp_path / "b" / "plan.json").read_bytes()
    code, _ = compared("--markdown", str(tmp_path / "b" / "plan.json"))
    assert code == 2 and (tmp_path / "b" / "plan.json").read_bytes() == before


def test_a_rate_of_zero_is_no_measurement(tmp_path, compared):
    write_run(tmp_path / "a", {"torch": noisy(100, 1, 6), "jax": noisy(9, 2)})
    write_run(tmp_path / "b", {"torch": [0.0] * 6, "jax": noisy(9, 3)}, day=1)
    code, facts = facts_of(compared)
    lines = {line["cell"].split(".")[1]: line for line in facts["others"][0]["lines"]}
    assert lines["torch"]["outcome"] == "not comparable" and code == 0
    assert "zero or less" in lines["torch"]["reason"]
    assert facts["not_compared"] == 1 and compared("--complete")[0] == 5


def test_what_no_correction_reaches_is_not_confirmed(tmp_path, compared):
    # A loss of zero has no ratio: ranks alone tell, and nothing holds them beside the others.
    for name, day, loss in (("a", 0, 0.0), ("b", 1, 0.2)):
        for repeat in range(6):
            line = {"samples_per_second": 100.0 + repeat, "log_loss": loss * (1 + repeat / 100)}
            at = START + timedelta(days=day, minutes=repeat)
            record = run_record(train_cell("torch", repeat), line, at=at)
            write_records(tmp_path / name, record)
            rival_record = run_record(train_cell("jax", repeat), line | {"log_loss": 0.2 + repeat / 100}, at=at)
            write_records(tmp_path / name, rival_record)
    _, facts = facts_of(compared)
    (line,) = (row for row in facts["others"][0]["lines"] if row["metric"] == "log_loss" and ".torch." in row["cell"])
    assert (line["outcome"], line["confidence"]) == ("worse", "provisional")


@pytest.mark.parametrize("label", [None, "1024"])
def test_one_disturbed_run_of_five_is_no_noise_of_a_metric_whatever_its_label(tmp_path, compared, label):
    for name, factor in (("a", 1.0), ("b", 1.5)):
        for repeat, time in enumerate((1.0, 1.01, 0.99, 1.005, 5.0)):
            cell = Cell.of(stage="bench", benchmark="network-probe", repeat=repeat)
            number = MetricValue.of("message_time", factor * time, label=label)
            record = run_record(cell, [number], details={"disturbed": repeat == 4})
            write_records(tmp_path / name, record)
    code, facts = facts_of(compared)
    (line,) = (each for each in facts["others"][0]["lines"] if each["metric"] == "message_time")
    assert (code, line["outcome"], line["confidence"]) == (4, "worse", "confirmed"), line["reason"]


def test_disturbed_runs_do_not_enter_as_long_as_three_others_are_there(tmp_path, compared):
    for name, loud in (("a", 1.0), ("b", 5.0)):
        for repeat, time in enumerate((1.0, 1.01, 0.99, loud, loud)):
            cell = Cell.of(stage="bench", benchmark="network-probe", repeat=repeat)
            record = run_record(
                cell, [MetricValue.of("message_time", time + (name == "b") * 0.001)], details={"disturbed": repeat > 2}
            )
            write_records(tmp_path / name, record)
    _, facts = facts_of(compared, "--all")
    (line,) = (each for each in facts["others"][0]["lines"] if each["metric"] == "message_time")
    assert (line["outcome"], line["other"]["runs"]) == ("same", 3), line["reason"]
    assert line["confidence"] != "confirmed"
