"""Claim, evidence and interval are of one ratio, whichever runs were disturbed."""

from __future__ import annotations

import re

import pytest
from said_of_records import findings

from factories import make_record, train_cell
from transect.domain.record import Record
from transect.report.findings.finding import Finding

# Samples/s of one rank and of two, of which somebody stopped a run.
STOPPED = ([100.0, 101.0, 99.0], [119.0, 120.0, 14.0])
SLOWER = ([100.0, 101.0, 99.0], [60.0, 61.0, 59.0])
FASTER = ([100.0, 101.0, 99.0, 100.0, 102.0, 98.0], [180.0, 182.0, 179.0, 181.0, 40.0, 180.0])


def trained(rates: tuple[list[float], list[float]]) -> list[Record]:
    return [
        make_record(
            train_cell("torch", n, strategy="single" if ranks == 1 else "ddp-gloo", ranks_per_node=ranks),
            {"samples_per_second": rate, "step_time": 16 / rate, "equality_ratio": 0.1},
            details={"global_batch": 16},
        )
        for ranks, own in zip((1, 2), rates, strict=True)
        for n, rate in enumerate(own)
    ]


def numbers(pattern: str, text: str) -> list[float]:
    told = re.search(pattern, text)
    assert told is not None, text
    return [float(one) for one in told.groups()]


def scaling_of(rates: tuple[list[float], list[float]]) -> tuple[Finding, Finding]:
    found = findings(*trained(rates))
    return found["scaling"][0], found["distribution"][0]


@pytest.mark.parametrize("rates", [STOPPED, SLOWER, FASTER])
def test_what_more_ranks_bring_lies_inside_the_interval_of_its_comparison(
    rates: tuple[list[float], list[float]],
) -> None:
    scaling, _ = scaling_of(rates)
    [one] = scaling.comparisons
    assert scaling.decision is not None and one.ratio is not None
    gain, low, high = numbers(
        r"^([\d.]+) times the speed of 1 rank \(95 % interval ([\d.]+) to ([\d.]+)\)", scaling.decision.gain
    )
    assert low <= gain <= high
    told = (one.ratio.value, one.ratio.low, one.ratio.high)
    assert (gain, low, high) == tuple(float(f"{value:.3g}") for value in told)
    assert f"ratio of trimmed geometric means {one.ratio.value:.3g}" in scaling.evidence


@pytest.mark.parametrize("rates", [SLOWER, FASTER])
def test_what_distribution_costs_is_its_comparison_less_1(rates: tuple[list[float], list[float]]) -> None:
    _, cost = scaling_of(rates)
    [one] = cost.comparisons
    assert one.ratio is not None
    [said] = numbers(r"takes ([\d.]+) % longer", cost.claim)
    assert said == round(100 * (one.ratio.value - 1))
