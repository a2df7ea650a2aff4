"""In which order findings are read: by what they change for a reader."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

from transect.report.engine.finding import HEADINGS, Finding
from transect.stats.comparisons import Confidence


class Turn(IntEnum):
    """When a finding is read; of one turn, the larger effect first."""

    WRONG_RESULTS = 0
    CONFIRMED_DECISION = 1
    PROVISIONAL_DECISION = 2
    FACT = 3
    PROVISIONAL = 4
    ABOUT_THE_STUDY = 5
    INCONCLUSIVE = 6


def turn_of(finding: Finding) -> Turn:
    """Return when it is read.

    Wrong results take the ground from under all else. Then comes what decides between cells, confirmed before
    provisional; facts; what was seen once; the study itself; last what is inconclusive.
    """
    if finding.alarm:
        return Turn.WRONG_RESULTS
    if finding.confidence is Confidence.INCONCLUSIVE:
        return Turn.INCONCLUSIVE
    confirmed = finding.confidence is Confidence.CONFIRMED
    if finding.contrasts:
        return Turn.CONFIRMED_DECISION if confirmed else Turn.PROVISIONAL_DECISION
    if finding.subject in HEADINGS and finding.subject == "study":
        return Turn.ABOUT_THE_STUDY
    return Turn.FACT if confirmed else Turn.PROVISIONAL


def effect_of(finding: Finding) -> float:
    """Return the smallest difference that a finding shows, as the logarithm of the factor; 0 for the same.

    The nearest rival counts: beating the worst by far changes nothing.
    """
    factors = [made.times.value for made in finding.contrasts if made.shown]
    return math.log(min(factors)) if factors else 0.0


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings in the order in which they are read; equal ones as they come."""
    return sorted(findings, key=lambda finding: (turn_of(finding), -effect_of(finding)))
