"""The conformance section and its finding: pass rates by opset, and where runtimes differ."""

from __future__ import annotations

from typing import Any

import pytest
from make_records import make_record
from said_of_records import Made, context, prose

from transect.domain.cell import Cell
from transect.domain.record import Cause, Record, Status
from transect.report.findings import conformance

KERNEL = {"outcome": "failed", "reason": "no kernel", "tests": ["test_a", "test_b"]}
WRONG = {"outcome": "wrong", "reason": "output 'y' differs", "tests": ["test_c"]}


def of_runtime(runtime: str, *not_passed: dict[str, Any], provider: str = "cpu", tests: int = 10) -> Record:
    """A record with five tests of opset 9 and the others of opset 13; what fails is of opset 13."""
    cell = Cell.of(stage="conformance", runtime=runtime, provider=provider)
    left = sum(len(group["tests"]) for group in not_passed)
    opsets = {"13": {"pass": tests - 5 - left, "failed": left}, "9": {"pass": 5}}
    details = {"tests": tests, "opsets": opsets, "not_passed": list(not_passed)}
    return make_record(cell, {"conformance_pass_rate": 1 - left / tests}, details=details)


OTHER = {**KERNEL, "tests": ["test_a", "test_d"]}
NOT_RUN = make_record(
    Cell.of(stage="conformance", runtime="go", provider="cpu"),
    status=Status.FAILED,
    cause=Cause.CRASH,
    message="it fell over",
)
LONGER = {**KERNEL, "reason": "OrtException: no kernel"}
SETS = {
    "two providers": [of_runtime("python"), of_runtime("python", WRONG, provider="cuda")],
    "all the same": [of_runtime("python", KERNEL), of_runtime("rust", KERNEL)],
    "different": [of_runtime("python"), of_runtime("rust", KERNEL, WRONG)],
    "as many others": [of_runtime("python", KERNEL), of_runtime("rust", OTHER)],
    "a longer message": [of_runtime("java", LONGER), of_runtime("python", KERNEL), of_runtime("rust")],
    "one not run": [of_runtime("python"), of_runtime("rust"), NOT_RUN],
}


@pytest.mark.parametrize(
    ("name", "passed", "differ"),
    [
        ("all the same", [8, 8], []),
        ("different", [10, 7], ["test_a", "test_b", "test_c"]),
        ("as many others", [8, 8], ["test_b", "test_d"]),
    ],
)
def test_runtimes_differ_in_tests_and_not_in_counts(name: str, passed: list[int], differ: list[str]) -> None:
    runtimes = conformance.tested(context(*SETS[name]))
    assert [one.passed for one in runtimes] == passed
    assert conformance.differing_tests(runtimes) == differ


def test_prose(snapshot: Any) -> None:
    sections = {f"section of {name}": Made("conformance", *own).prose for name, own in SETS.items()}
    assert prose(SETS, "conformance") | sections == snapshot
