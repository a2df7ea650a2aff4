"""The conformance section and its finding: pass rates by opset, and where runtimes differ."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import make_record
from said_of_records import context, only, prose

from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status
from transect.report.blocks import Chip, Prose, Table
from transect.report.findings import conformance
from transect.report.sections.conformance import conformance_body

KERNEL = {"outcome": "failed", "reason": "no kernel", "tests": ["test_a", "test_b"]}
WRONG = {"outcome": "wrong", "reason": "output 'y' differs", "tests": ["test_c"]}


def of_runtime(runtime: str, *not_passed: dict[str, Any], provider: str = "cpu", tests: int = 10) -> Record:
    """A record with five tests of opset 9 and the others of opset 13; what fails is of opset 13."""
    cell = Cell.of(stage="conformance", runtime=runtime, provider=provider)
    left = sum(len(group["tests"]) for group in not_passed)
    opsets = {"13": {"pass": tests - 5 - left, "failed": left}, "9": {"pass": 5}}
    details = {"tests": tests, "opsets": opsets, "not_passed": list(not_passed)}
    return make_record(cell, {"conformance_pass_rate": 1 - left / tests}, details=details)


def tables(*records):
    """Return the section's tables, each as a list of rows by title."""
    return [
        [dict(zip([c.title for c in part.columns], row, strict=True)) for row in part.rows]
        for part in conformance_body(context(*records))
        if isinstance(part, Table)
    ]


def test_pass_rates_stand_by_opset_in_the_order_of_its_number():
    rates, *_ = tables(of_runtime("python", KERNEL), of_runtime("rust"))
    assert rates == [
        {"Opset": "9", "Tests": "5", "python": "5 · 100.0 %", "rust": "5 · 100.0 %"},
        {"Opset": "13", "Tests": "5", "python": "3 · 60.0 %", "rust": "5 · 100.0 %"},
        {"Opset": "all", "Tests": "10", "python": "8 · 80.0 %", "rust": "10 · 100.0 %"},
    ]


def test_tests_in_which_runtimes_differ_are_listed_and_no_others():
    _, differing, reasons = tables(of_runtime("python", KERNEL), of_runtime("rust", KERNEL, WRONG))
    assert differing == [
        {"python": Chip("pass", "good"), "rust": Chip("wrong", "bad"), "Tests": "1", "Which": "test_c"}
    ]
    assert [(row["Tests"], row["Reason"], row["Under"]) for row in reasons] == [
        ("2", "no kernel", "every runtime"),
        ("1", "output 'y' differs", "rust"),
    ]


def test_what_a_language_adds_to_a_message_makes_no_other_reason():
    longer = {**KERNEL, "reason": "OrtException: no kernel"}
    *_, reasons = tables(of_runtime("java", longer), of_runtime("python", KERNEL), of_runtime("rust"))
    assert [(row["Reason"], row["Under"]) for row in reasons] == [("no kernel", "java, python")]


OTHER = {**KERNEL, "tests": ["test_a", "test_d"]}
NOT_RUN = make_record(
    Cell.of(stage="conformance", runtime="go", provider="cpu"),
    status=Status.FAILED,
    cause=Cause.CRASH,
    message="it fell over",
)
SETS = {
    "two providers": [of_runtime("python"), of_runtime("python", WRONG, provider="cuda")],
    "all the same": [of_runtime("python", KERNEL), of_runtime("rust", KERNEL)],
    "different": [of_runtime("python"), of_runtime("rust", KERNEL, WRONG)],
    "as many others": [of_runtime("python", KERNEL), of_runtime("rust", OTHER)],
    "one not run": [of_runtime("python"), of_runtime("rust"), NOT_RUN],
}


def test_prose(snapshot: Any) -> None:
    assert prose(SETS, "conformance") == snapshot


@pytest.mark.parametrize(
    ("name", "passed", "differ", "confidence"),
    [
        ("all the same", [8, 8], [], "confirmed"),
        ("different", [10, 7], ["test_a", "test_b", "test_c"], "confirmed"),
        ("as many others", [8, 8], ["test_b", "test_d"], "confirmed"),
        ("one not run", [10, 10], [], "provisional"),
    ],
)
def test_the_finding_says_who_passes_what_and_where_they_differ(
    name: str, passed: list[int], differ: list[str], confidence: str
) -> None:
    runtimes = conformance.tested(context(*SETS[name]))
    assert [one.label for one in runtimes] == ["python", "rust"]
    assert [one.passed for one in runtimes] == passed
    assert conformance.differing_tests(runtimes) == differ
    found = only("conformance", *SETS[name])
    assert (found.confidence, found.scope) == (confidence, "on cpu")
    assert all(test in found.claim for test in differ) and "10 operator" in found.claim
    assert ("1 runtime" in found.evidence) == (name == "one not run")


def test_runtimes_of_two_providers_are_not_set_against_each_other() -> None:
    made = context(*SETS["two providers"])
    parts = list(conformance_body(made))
    assert not any("Nowhere" in part.text for part in parts if isinstance(part, Prose))
    found = conformance.conformance_findings(made)
    assert [one.scope for one in found] == ["on cpu", "on cuda"]
    assert ["10 of 10" in one.claim for one in found] == [True, False]


def test_a_study_without_these_cells_has_no_such_section() -> None:
    assert list(conformance_body(context())) == []
    assert conformance.conformance_findings(context()) == []
