"""What is said of the study itself: which runs met others, what was installed midway, how far runs are apart."""

from __future__ import annotations

import pytest
from make_records import make_record
from said_of_records import Made, findings

from factories import infer_cell
from transect.domain.record import Cause, Record, Status

LACKING = {"status": Status.SKIPPED, "cause": Cause.MISSING_DEPENDENCY}


def ran(
    repeat: int, latency: float = 1e-4, *, runtime: str = "cpp", disturbed: bool = False, **fields: object
) -> Record:
    cell = infer_cell(runtime, repeat, workload="w", exporter="dynamo")
    metrics = {} if fields else {"latency": latency}
    return make_record(cell, metrics, details={"disturbed": disturbed}, **fields)


def noise(*records: Record) -> list[str]:
    return [finding.claim for finding in findings(*records).get("noise", [])]


def test_what_was_skipped_met_nobody() -> None:
    met = noise(*(ran(n, disturbed=True) for n in range(3)), *(ran(n, disturbed=True, **LACKING) for n in range(3, 5)))
    assert any("all 3 runs shared the machine" in claim for claim in met)
    some = noise(ran(0, disturbed=True), ran(1), ran(2), ran(3))
    assert any("at work in 1 of 4 runs" in claim for claim in some)


def test_a_program_installed_midway_is_a_difference() -> None:
    agreed = Made("provenance", *map(ran, range(3)))
    assert agreed.lead.startswith("All records agree")
    midway = Made("provenance", ran(0, **LACKING, message="no platform has a GPU"), ran(1), ran(2))
    assert midway.lead.startswith("Records differ in What is installed")
    [row] = midway.table("Where records differ")
    assert "no platform" in row["Value"] and "1 repeat" in row["Value"]
    other = Made("provenance", ran(0, **LACKING, message="it takes w.r0~01234567, which failed"), ran(1), ran(2))
    assert other.lead.startswith("All records agree"), "what took something from another cell lacked no program"


@pytest.mark.parametrize(("repeats", "known"), [(1, False), (3, False), (4, True)])
def test_of_few_pairs_nothing_is_said_of_the_noise(repeats: int, known: bool) -> None:
    [found] = findings(*(ran(n, 1e-4 * (1 + n / 10)) for n in range(repeats)))["noise"]
    assert (found.confidence == "confirmed") is known
    assert ("differ by up to" in found.claim) is known
