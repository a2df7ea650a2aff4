"""Section: ONNX's own operator tests under each runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from transect.analysis.groups import grouped
from transect.report.engine.blocks import Chip, Heading, Lead, Part, digits, note, table, words
from transect.report.engine.context import Context
from transect.report.engine.text import clean, clipped, count, tenths
from transect.report.topics.conformance.findings import Tested, differing_tests, tested

_TONES = {"pass": "good", "failed": "warn", "unsupported": "warn"}
_ALL = "all"
_NAMED = 3
_WIDTH = 160


def conformance_body(context: Context) -> Iterator[Part]:
    """Show pass rates by opset, where runtimes differ, and why tests do not pass."""
    if not context.of("conformance"):
        return
    yield Lead(
        "Tests that ONNX itself has for each of its operators, through every runner, by ONNX's own rules. A test that a runtime "
        "refuses has failed: mostly it has no kernel for it, or its opset is newer than the runtime."
    )
    runtimes = tested(context)
    if not runtimes:
        return
    yield _rates(runtimes)
    yield from _differences(runtimes)
    yield _reasons(runtimes)
    yield from _outside(context)


def _rates(runtimes: list[Tested]) -> Part:
    def counted(runtime: Tested, opset: str) -> tuple[int, int]:
        """How many tests of an opset pass, of how many."""
        row = runtime.opsets.get(opset, {})
        return (runtime.passed, runtime.tests) if opset == _ALL else (row.get("pass", 0), sum(row.values()))

    def rate(runtime: Tested) -> Callable[[str], str | None]:
        def share(opset: str) -> str | None:
            passed, tests = counted(runtime, opset)
            return f"{passed} · {tenths(passed / tests)}" if tests else None

        return share

    return table(
        [*_opsets(runtimes), _ALL],
        [
            words("Opset", clean),
            digits("Tests", lambda opset: max(counted(runtime, opset)[1] for runtime in runtimes)),
            *(words(clean(runtime.label), rate(runtime)) for runtime in runtimes),
        ],
        caption="Tests that pass, by the opset that the test's model asks for",
    )


def _opsets(runtimes: list[Tested]) -> list[str]:
    """Return the opsets, those of ONNX's default domain first, by number."""
    every = {opset for runtime in runtimes for opset in runtime.opsets}

    def order(opset: str) -> tuple[str, int, str]:
        domain, _, version = opset.rpartition(" ")
        return domain, int(version) if version.isdecimal() else 0, version

    return sorted(every, key=order)


def _differences(runtimes: list[Tested]) -> Iterator[Part]:
    """List the tests in which runtimes of one provider differ."""
    for provider in sorted({runtime.provider for runtime in runtimes}):
        same = [runtime for runtime in runtimes if runtime.provider == provider]
        if len(same) > 1:
            yield Heading(f"Where runtimes differ on {clean(provider)}")
            yield _differing(same)


def _differing(runtimes: list[Tested]) -> Part:
    """Show the tests in which runtimes differ, those together of which the same came everywhere."""
    names = differing_tests(runtimes)
    if not names:
        return note("Nowhere: the same came of every test.")
    alike = grouped(names, lambda name: tuple(runtime.outcome(name) for runtime in runtimes))

    def outcome(place: int) -> Callable[[tuple[str, ...]], Chip]:
        return lambda key: _chip(key[place])

    columns = [
        *(words(clean(runtime.label), outcome(place)) for place, runtime in enumerate(runtimes)),
        digits("Tests", lambda key: len(alike[key])),
        words("Which", lambda key: clean(", ".join(alike[key]))),
    ]
    rows = sorted(alike, key=lambda key: (-len(alike[key]), key))
    return table(rows, columns, caption=f"{count(len(names), 'test')} in which they differ")


def _chip(outcome: str) -> Chip:
    return Chip(clean(outcome), _TONES.get(outcome, "bad"))


@dataclass(kw_only=True, slots=True)
class _Reason:
    """Why tests did not pass, and under which runtimes."""

    outcome: str
    words: str
    tests: set[str] = field(default_factory=set)
    runtimes: set[str] = field(default_factory=set)


def _words(runtimes: list[Tested]) -> dict[tuple[str, str], str]:
    """Return why a test ended so, by its name and outcome: languages add to the words, none takes any."""
    shortest: dict[tuple[str, str], str] = {}
    for runtime in runtimes:
        for name, (outcome, why) in runtime.outcomes.items():
            kept = shortest.setdefault((name, outcome), why)
            shortest[name, outcome] = min(kept, why, key=lambda text: (len(text), text))
    return shortest


def _reasons(runtimes: list[Tested]) -> Part:
    reasons: dict[tuple[str, str], _Reason] = {}
    shortest = _words(runtimes)
    for runtime in runtimes:
        for name, (outcome, _) in runtime.outcomes.items():
            why = shortest[name, outcome]
            reason = reasons.setdefault((outcome, why), _Reason(outcome=outcome, words=why))
            reason.tests.add(name)
            reason.runtimes.add(runtime.label)

    def who(row: _Reason) -> str:
        if len(row.runtimes) == len(runtimes) > 1:
            return "every runtime"
        return clean(", ".join(sorted(row.runtimes)))

    def such_as(row: _Reason) -> str:
        return clean(", ".join(sorted(row.tests)[:_NAMED]))

    rows = sorted(reasons.values(), key=lambda row: (-len(row.tests), row.words))
    return (
        table(
            rows,
            [
                words("", lambda row: _chip(row.outcome)),
                digits("Tests", lambda row: len(row.tests)),
                words("Reason", lambda row: clipped(row.words, _WIDTH)),
                words("Such as", such_as),
                words("Under", who),
            ],
            folded="Why tests do not pass",
        )
        if rows
        else None
    )


def _outside(context: Context) -> Iterator[Part]:
    """Say which of ONNX's tests are not among them: the runner contract has no such values."""
    for group in context.of("onnx-node-tests"):
        for record in group.ok[-1:]:
            outside = record.details["outside_contract"]
            left = sum(map(len, outside.values()))
            why = ", ".join(
                f"{len(tests)} {kind}" for kind, tests in sorted(outside.items(), key=lambda item: -len(item[1]))
            )
            yield note(
                clean(
                    f"ONNX {record.details['onnx_version']} has {record.details['tests']} tests; {left} are left out for every "
                    f"runtime, because the runner contract has no tensors of their types or because they are random: {why}."
                )
            )
