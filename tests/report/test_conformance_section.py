"""The conformance section and its finding: pass rates by opset, and where runtimes differ."""

from __future__ import annotations

from make_records import make_record

from transect.analysis.comparisons import Sureness
from transect.analysis.load import Loaded
from transect.domain.cell import Cell
from transect.domain.record import Cause, Status
from transect.report.blocks import Chip, Prose, Table
from transect.report.context import Context
from transect.report.findings.conformance import conformance_findings
from transect.report.sections.conformance import conformance_body

KERNEL = {"outcome": "failed", "reason": "no kernel", "tests": ["test_a", "test_b"]}
WRONG = {"outcome": "wrong", "reason": "output 'y' differs", "tests": ["test_c"]}


def record(runtime, *not_passed, provider="cpu", tests=10):
    """A record with five tests of opset 9 and the others of opset 13; what fails is of opset 13."""
    cell = Cell.of(stage="conformance", runtime=runtime, provider=provider)
    left = sum(len(group["tests"]) for group in not_passed)
    opsets = {"13": {"pass": tests - 5 - left, "failed": left}, "9": {"pass": 5}}
    details = {"tests": tests, "opsets": opsets, "not_passed": list(not_passed)}
    return make_record(cell, {"conformance_pass_rate": 1 - left / tests}, details=details)


def context(*records):
    return Context(Loaded(study="s", records=list(records)), title="t")


def tables(*records):
    """Return the section's tables, each as a list of rows by title."""
    return [
        [dict(zip([c.title for c in part.columns], row, strict=True)) for row in part.rows]
        for part in conformance_body(context(*records)) if isinstance(part, Table)
    ]  # fmt: skip


def test_pass_rates_stand_by_opset_in_the_order_of_its_number():
    rates, *_ = tables(record("python", KERNEL), record("rust"))
    assert rates == [
        {"Opset": "9", "Tests": "5", "python": "5 · 100.0 %", "rust": "5 · 100.0 %"},
        {"Opset": "13", "Tests": "5", "python": "3 · 60.0 %", "rust": "5 · 100.0 %"},
        {"Opset": "all", "Tests": "10", "python": "8 · 80.0 %", "rust": "10 · 100.0 %"},
    ]


def test_tests_in_which_runtimes_differ_are_listed_and_no_others():
    _, differing, reasons = tables(record("python", KERNEL), record("rust", KERNEL, WRONG))
    assert differing == [
        {"python": Chip("pass", "good"), "rust": Chip("wrong", "bad"), "Tests": "1",
         "Which": "test_c"},
    ]  # fmt: skip
    assert [(row["Tests"], row["Reason"], row["Under"]) for row in reasons] == [
        ("2", "no kernel", "every runtime"), ("1", "output 'y' differs", "rust"),
    ]  # fmt: skip


def test_what_a_language_adds_to_a_message_makes_no_other_reason():
    longer = {**KERNEL, "reason": "OrtException: no kernel"}
    *_, reasons = tables(record("java", longer), record("python", KERNEL), record("rust"))
    assert [(row["Reason"], row["Under"]) for row in reasons] == [("no kernel", "java, python")]


def test_runtimes_of_two_providers_are_not_set_against_each_other():
    parts = list(
        conformance_body(context(record("python"), record("python", WRONG, provider="cuda")))
    )
    assert not any("Nowhere" in part.text for part in parts if isinstance(part, Prose))
    claims = [one.text for one in conformance_findings(context(record("python"), record("python", WRONG, provider="cuda")))]  # fmt: skip
    assert len(claims) == 2
    assert claims[0].startswith("On cpu: ") and claims[0].endswith(
        "passes 10 of 10 operator tests."
    )


def test_a_study_without_these_cells_has_no_such_section():
    assert list(conformance_body(context())) == []
    assert conformance_findings(context()) == []


def test_the_finding_says_that_all_pass_the_same():
    (finding,) = conformance_findings(context(record("python", KERNEL), record("rust", KERNEL)))
    assert finding.text == (
        "On cpu: all 2 runtimes pass the same 8 of 10 operator tests, and the same comes of the others."
    )
    assert finding.sureness is Sureness.FIRM


def test_the_finding_names_where_they_differ():
    (finding,) = conformance_findings(context(record("python"), record("rust", KERNEL, WRONG)))
    assert finding.text == (
        "On cpu: of 10 operator tests python passes 10 and rust 7; they differ in 3 tests: test_a, "
        "test_b and test_c."
    )


def test_runtimes_that_fail_other_tests_do_not_pass_the_same():
    other = {**KERNEL, "tests": ["test_a", "test_d"]}
    (finding,) = conformance_findings(context(record("python", KERNEL), record("rust", other)))
    assert finding.text == (
        "On cpu: of 10 operator tests python and rust pass 8; they differ in 2 tests: test_b and test_d."
    )


def test_what_did_not_run_makes_the_claim_tentative():
    cell = Cell.of(stage="conformance", runtime="go", provider="cpu")
    failed = make_record(cell, status=Status.FAILED, cause=Cause.CRASH, message="it fell over")
    (finding,) = conformance_findings(context(record("python"), record("rust"), failed))
    assert finding.sureness is Sureness.TENTATIVE
    assert "1 runtime could not be tested" in finding.evidence
