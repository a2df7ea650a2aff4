"""What a report says of conformance: which of ONNX's operator tests runtimes pass, and where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.analysis.labels import group_labels
from transect.domain.record import Status
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, names
from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.engine.text import clean, clipped, count, tenths
from transect.stats.comparisons import Confidence

_TONES = {"pass": "good", "failed": "warn", "unsupported": "warn"}
# Named where two runtimes differ, or a reason has many tests; the section lists all that differ.
_NAMED = 3
_WIDTH = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """What the operator tests found of one runtime on one provider.

    `outcomes` has those that did not pass, by name: the outcome and the reason. `opsets` counts outcomes by opset.
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
    details = record.details
    return Tested(
        label=clean(label),
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
    by_provider = grouped(tested(context), lambda runtime: runtime.provider)
    return [_finding(provider, runtimes, context) for provider, runtimes in sorted(by_provider.items())]


def _finding(provider: str, runtimes: list[Tested], context: Context) -> Finding:
    differing = differing_tests(runtimes)
    passed = runtimes[0].passed
    every = max(runtime.tests for runtime in runtimes)
    if len(runtimes) == 1:
        claim = f"{runtimes[0].label} passes {passed} of {every} operator tests."
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
        who = [runtime.label for runtime in by_number[number]]
        verb = "" if parts else " pass" if len(who) > 1 else " passes"
        parts.append(f"{names(who, len(who))}{verb} {number}")
    return names(parts, len(parts))


def conformance_body(context: Context) -> Iterator[Part]:
    """Show pass rates by opset, where runtimes differ, and why tests do not pass."""
    runtimes = tested(context)
    if context.of("conformance"):
        yield Lead(
            "Tests that ONNX itself has for each of its operators, through every runner, by ONNX's own rules. A test that a "
            "runtime refuses has failed: mostly it has no kernel for it, or its opset is newer than the runtime."
        )
    if not runtimes:
        return
    yield _rates(runtimes)
    for provider, same in sorted(grouped(runtimes, lambda runtime: runtime.provider).items()):
        if len(same) > 1:
            yield Heading(f"Where runtimes differ on {clean(provider)}")
            yield _differing(same)
    yield _reasons(runtimes)
    yield from _outside(context)


def _rates(runtimes: Sequence[Tested]) -> Part:
    """Count the tests that pass by opset, those of ONNX's default domain first, by number, and all at the end."""

    def order(opset: str) -> tuple[str, int, str]:
        domain, _, version = opset.rpartition(" ")
        return domain, int(version) if version.isdecimal() else 0, version

    def rate(runtime: Tested, opset: str | None) -> str | None:
        row = runtime.opsets.get(opset, {}) if opset else {"pass": runtime.passed, "": len(runtime.outcomes)}
        tests = sum(row.values())
        return f"{row.get('pass', 0)} · {tenths(row.get('pass', 0) / tests)}" if tests else None

    def tests(opset: str | None) -> int:
        return max(sum(r.opsets.get(opset, {}).values()) if opset else r.tests for r in runtimes)

    return table(
        [*sorted({opset for runtime in runtimes for opset in runtime.opsets}, key=order), None],
        [
            words("Opset", lambda opset: clean(opset or "all")),
            digits("Tests", tests),
            *(words(runtime.label, partial(rate, runtime)) for runtime in runtimes),
        ],
        caption="Tests that pass, by the opset that the test's model asks for",
    )


def _differing(runtimes: Sequence[Tested]) -> Part:
    """Show the tests in which runtimes differ, those together of which the same came everywhere."""
    differing = differing_tests(runtimes)
    if not differing:
        return note("Nowhere: the same came of every test.")
    alike = grouped(differing, lambda name: tuple(runtime.outcome(name) for runtime in runtimes))

    def outcome(place: int, outcomes: tuple[str, ...]) -> Chip:
        return _chip(outcomes[place])

    columns = [
        *(words(runtime.label, partial(outcome, place)) for place, runtime in enumerate(runtimes)),
        digits("Tests", lambda key: len(alike[key])),
        words("Which", lambda key: clean(", ".join(alike[key]))),
    ]
    rows = sorted(alike, key=lambda key: (-len(alike[key]), key))
    return table(rows, columns, caption=f"{count(len(differing), 'test')} in which they differ")


def _chip(outcome: str) -> Chip:
    return Chip(clean(outcome), _TONES.get(outcome, "bad"))


def _reasons(runtimes: Sequence[Tested]) -> Part:
    """List why tests do not pass, by their shortest words: languages add to them, none takes any."""
    every = [(name, outcome, why, r.label) for r in runtimes for name, (outcome, why) in r.outcomes.items()]
    ends = grouped(every, lambda end: end[:2])
    shortest = {key: min((why for *_, why, _ in of_test), key=lambda t: (len(t), t)) for key, of_test in ends.items()}
    reasons = grouped(every, lambda end: (end[1], shortest[end[:2]]))
    tests = {reason: sorted({name for name, *_ in members}) for reason, members in reasons.items()}

    def under(reason: tuple[str, str]) -> str:
        labels = sorted({label for *_, label in reasons[reason]})
        return "every runtime" if len(labels) == len(runtimes) > 1 else ", ".join(labels)

    columns = [
        words("", lambda reason: _chip(reason[0])),
        digits("Tests", lambda reason: len(tests[reason])),
        words("Reason", lambda reason: clipped(reason[1], _WIDTH)),
        words("Such as", lambda reason: clean(", ".join(tests[reason][:_NAMED]))),
        words("Under", under),
    ]
    rows = sorted(reasons, key=lambda reason: (-len(tests[reason]), reason[1]))
    return table(rows, columns, folded="Why tests do not pass") if rows else None


def _outside(context: Context) -> Iterator[Part]:
    """Say which of ONNX's tests are not among them: the runner contract has no such values."""
    for details in (record.details for group in context.of("onnx-node-tests") for record in group.ok[-1:]):
        outside = sorted(details["outside_contract"].items(), key=lambda item: -len(item[1]))
        left = sum(len(tests) for _, tests in outside)
        why = ", ".join(f"{len(tests)} {kind}" for kind, tests in outside)
        yield note(
            clean(
                f"ONNX {details['onnx_version']} has {details['tests']} tests; {left} are left out for every "
                f"runtime, because the runner contract has no tensors of their types or because they are random: {why}."
            )
        )


REPORT = StageReport(
    stage="conformance",
    sections=(Section(key="conformance", title="Conformance", order=650, make=conformance_body),),
    findings=(FindingMaker(name="conformance", order=750, make=conformance_findings, section="conformance"),),
)
