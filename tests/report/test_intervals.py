"""Each interval that a report prints is the one that decided: it says what the verdict says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from make_framework_records import write_framework_study
from make_records import write_synthetic_study
from make_retrain_records import write_retrain_study
from make_runtime_records import write_runtime_study
from make_ticket_records import write_ticket_study

from transect.analysis.contrasts import Contrast
from transect.analysis.load import load_records
from transect.report.engine.collect import make_findings
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding
from transect.report.engine.parts import all_parts
from transect.report.engine.text import factor, number
from transect.stats.comparisons import Confidence
from transect.stats.verdicts import Answer

WRITERS = (write_synthetic_study, write_framework_study, write_runtime_study, write_retrain_study, write_ticket_study)
_PRINTED = re.compile(r"([0-9.]+) % interval ([0-9.,e-]+) to ([0-9.,e-]+)")


def says_what_its_interval_says(made: Contrast) -> bool:
    """Whether answer and interval agree, at the level that the interval has."""
    if made.decision is None or made.barred:
        return made.answer is Answer.OPEN
    _, low, high = made.ratio.logs
    edge = math.log1p(made.comparison.margin)
    within, apart = -edge <= low and high <= edge, low > 0 or high < 0
    return made.answer is (Answer.SAME if within else Answer.DIFFERENT if apart else Answer.OPEN)


def intervals_of(finding: Finding) -> set[tuple[str, str, str]]:
    """The levels and ends of all that a finding may print, as they are written."""
    found = [each for made in finding.contrasts for each in (made.ratio, made.ratio.inverse, made.saves)]
    return {
        (f"{100 * each.level:.3g}", write(each.low), write(each.high)) for each in found for write in (number, factor)
    }


@pytest.fixture(scope="module", params=WRITERS, ids=lambda write: write.__name__)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Context, list[Finding]]:
    write: Callable[[Path], Path] = request.param
    made = Context(load_records(write(tmp_path_factory.mktemp("results"))), title="t")
    return made, make_findings(made, all_parts().findings)


def test_every_contrast_says_what_its_interval_says(told: tuple[Context, list[Finding]]) -> None:
    context, findings = told
    every = {*context.contrasts, *(made for finding in findings for made in finding.contrasts)}
    assert [made for made in every if not says_what_its_interval_says(made)] == []


def test_no_finding_is_surer_than_what_it_rests_on(told: tuple[Context, list[Finding]]) -> None:
    for finding in told[1]:
        if finding.confidence is Confidence.CONFIRMED:
            assert all(made.confidence is not Confidence.PROVISIONAL for made in finding.contrasts), finding.text


def test_a_finding_prints_the_interval_of_a_contrast(told: tuple[Context, list[Finding]]) -> None:
    for finding in told[1]:
        if finding.contrasts:
            for printed in _PRINTED.findall(finding.claim):
                assert printed in intervals_of(finding), finding.text
