"""Findings on conformance: do all runtimes pass the same operator tests?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.analysis.labels import group_labels
from transect.domain.record import Status
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.text import clean, count
from transect.stats.comparisons import Confidence

# Named where two runtimes differ; the section lists all.
_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """What the operator tests found of one runtime on one provider.

    `outcomes` has those that did not pass, by name: the outcome and the reason.
    """

    label: str
    provider: str
    tests: int
    opsets: dict[str, dict[str, int]]
    outcomes: dict[str, tuple[str, str]]

    @property
    def passed(self) -> int:
        """Number of tests that pass."""
        return self.tests - len(self.outcomes)

    def outcome(self, test: str) -> str:
        """Return what came of a test."""
        return self.outcomes.get(test, ("pass", ""))[0]


def tested(context: Context) -> list[Tested]:
    """Return every runtime whose tests ran, in the order of its label."""
    groups = [group for group in context.of("conformance") if group.ok]
    labels = group_labels(groups)
    found = [_tested(labels[group.cell], group.ok[-1]) for group in groups]
    return sorted(found, key=lambda runtime: runtime.label)


def _tested(label: str, record: AnyRecord) -> Tested:
    details: dict[str, Any] = record.details
    return Tested(
        label=label,
        provider=record.point.get("provider") or "cpu",
        tests=int(details["tests"]),
        opsets=details["opsets"],
        outcomes={
            name: (str(group["outcome"]), str(group["reason"]))
            for group in details["not_passed"]
            for name in group["tests"]
        },
    )


def differing_tests(runtimes: Iterable[Tested]) -> list[str]:
    """Return the tests of which not the same came under all runtimes, sorted."""
    runtimes = list(runtimes)
    every = {name for runtime in runtimes for name in runtime.outcomes}
    return sorted(name for name in every if len({runtime.outcome(name) for runtime in runtimes}) > 1)


def conformance_findings(context: Context) -> list[Finding]:
    """Say for each provider whether all runtimes pass the same tests."""
    runtimes = tested(context)
    return [
        _finding(provider, [runtime for runtime in runtimes if runtime.provider == provider], context)
        for provider in sorted({runtime.provider for runtime in runtimes})
    ]


def _finding(provider: str, runtimes: list[Tested], context: Context) -> Finding:
    differing = differing_tests(runtimes)
    passed = runtimes[0].passed
    every = max(runtime.tests for runtime in runtimes)
    if len(runtimes) == 1:
        claim = f"{clean(runtimes[0].label)} passes {passed} of {every} operator tests."
    elif not differing:
        claim = (
            f"all {len(runtimes)} runtimes pass the same {passed} of {every} operator tests, and "
            "the same comes of the others."
        )
    else:
        claim = (
            f"of {every} operator tests {_counts(runtimes)}; they differ in "
            f"{count(len(differing), 'test')}: {names(differing, _NAMED)}."
        )
    # What was never run is no agreement.
    missing = [
        record
        for record in context.records
        if record.stage == "conformance" and record.status is not Status.OK and record.point.get("provider") == provider
    ]
    same = len({runtime.tests for runtime in runtimes}) == 1
    return Finding(
        subject="conformance",
        scope=f"on {clean(provider)}",
        claim=claim,
        kind="conformance",
        confidence=Confidence.CONFIRMED if same and not missing else Confidence.PROVISIONAL,
        evidence=joined(
            "ONNX's own test data and tolerances, the same files for every runtime",
            f"{count(len(missing), 'runtime')} could not be tested" if missing else "",
            "" if same else "not all ran the same tests",
        ),
    )


def _counts(runtimes: list[Tested]) -> str:
    """Write who passes how many, the most first: `c and rust pass 9 and go 7`."""
    by_number = grouped(runtimes, lambda runtime: runtime.passed)
    parts: list[str] = []
    for number in sorted(by_number, reverse=True):
        who = [clean(runtime.label) for runtime in by_number[number]]
        verb = "" if parts else " pass" if len(who) > 1 else " passes"
        parts.append(f"{names(who, len(who))}{verb} {number}")
    return names(parts, len(parts))
