"""What is said of conditions and outputs of runtimes: equal or not, right or not."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import KERNELS, load_record, runs, seen
from option_runs import thesis_runs
from said_of_records import context, findings, only, prose

from transect.analysis.conditions import Conditions, conditions
from transect.domain.record import Cause, Record, Status
from transect.report.findings.conditions import worst

WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "3 elements are NaN"}
CPP = runs("cpp", 1e-4)
PAIR = [*CPP, *runs("rust", 1e-4)]
OTHERS = [
    *PAIR,
    *runs(
        "java",
        1e-4,
        details={"session_options_seen": seen(enable_mem_pattern=False), "options_not_set": ["enable_mem_pattern"]},
    ),
    *runs(
        "go", 1e-4, details={"kernels": {"count": 3, "names": [*KERNELS, "Cast CPUExecutionProvider"], "digest": "cd"}}
    ),
]
DRAW = [*CPP, *runs("a-first", 1e-4, details={"kernels": {"count": 9, "names": [], "digest": "zz"}})]
SILENT = [*PAIR, *runs("java", 1e-4, told=False)]
CONDITIONS = {
    "equal": [*PAIR, *runs("torch-eager", 1e-3)],
    "one tells nothing": SILENT,
    "other options and kernels": OTHERS,
    "a draw": DRAW,
}
NAN = {
    name: [*CPP, *runs("c", 1.2e-4), *runs("rust", 1e-9, metrics={"nonfinite_outputs": 3}, fields=fields)]
    for name, fields in {"failed": WRONG, "marked ok": {}}.items()
}
FAR = [*PAIR, *runs("cpp", 1e-4, precision="fp16", metrics={"max_abs_difference": 2e-3})]
TURNED = [
    record
    for name, time in (("cpp", 1e-4), ("c", 1.2e-4))
    for record in runs(name, time, precision="int8-dynamic", metrics={"top1_agreement": 0.99})
]
PARTLY = [
    *runs("cpp", 1e-4, details={"outputs_compared": 2, "outputs_expected": 2}),
    *runs("rust", 1e-4, details={"outputs_compared": 1, "outputs_expected": 2}),
    *(
        record.model_copy(update={"metrics": [m for m in record.metrics if m.name == "latency"]})
        for record in runs("go", 1e-4)
    ),
]
OUTPUTS = {**NAN, "right": PAIR, "one of another precision": FAR, "turned classes": TURNED, "partly": PARTLY}


def told(records: list[Record]) -> Conditions:
    return conditions(context(*records).of("infer"))


def test_prose(snapshot: Any) -> None:
    assert prose(CONDITIONS, "conditions") | prose(OUTPUTS, "outputs") == snapshot


# Conditions.


def test_equal_conditions_are_confirmed_where_all_runtimes_tell_them() -> None:
    records = CONDITIONS["equal"]
    assert told(records) == Conditions(points=1, runtimes=("cpp", "rust"), silent=(), differences=(), kernels=(2,))
    assert only("conditions", *records).confidence == "confirmed"


def test_one_that_tells_nothing_is_named() -> None:
    found = only("conditions", *SILENT)
    assert told(SILENT).silent == ("java",) and "java" in found.claim
    assert found.confidence == "provisional"


def test_older_records_tell_nothing_and_nothing_is_said() -> None:
    assert "conditions" not in findings(*runs("cpp", 1e-4, told=False), *runs("rust", 1e-4, told=False))


def test_who_had_other_options_or_kernels_is_named_with_both() -> None:
    go, java = told(OTHERS).differences
    assert (go.runtime, java.runtime, go.points, java.points) == ("go", "java", 1, 1)
    assert all(word in go.what for word in ("3", "2", "Cast CPUExecutionProvider"))
    assert all(word in java.what for word in ("enable_mem_pattern", "False", "True"))
    found = only("conditions", *OTHERS)
    assert go.what in found.claim and java.what in found.claim and found.confidence == "confirmed"
    assert "java enable_mem_pattern" in found.evidence, "what it could not set"


def test_of_a_draw_cpp_is_the_usual_one() -> None:
    [found] = told(DRAW).differences
    assert (found.runtime, found.points) == ("a-first", 1)
    assert all(word in found.what for word in ("9", "2", "without", *KERNELS))


def test_other_sets_of_options_are_meant_to_differ() -> None:
    under_load = [load_record(name, 100.0, 1, 9000.0) for name in ("cpp", "rust")]
    records = [*thesis_runs(), *under_load]
    assert told(records).equal and only("conditions", *records).confidence == "confirmed"


# Outputs.


@pytest.mark.parametrize("name", NAN)
def test_a_nan_has_no_latency_and_is_named(name: str) -> None:
    found = findings(*NAN[name])
    [outputs] = found["outputs"]
    assert outputs.alarm and outputs.confidence == "confirmed"
    assert "1 of 3" in outputs.claim and "rust" in outputs.claim and "cpp" not in outputs.claim
    assert "NaN" in outputs.evidence
    assert not any("rust" in one.claim for one in found["runtime"])
    assert "FFI overhead" not in found


def test_right_outputs_are_said_to_be_right_with_their_distance() -> None:
    found = only("outputs", *PAIR)
    assert not found.alarm and "fp32" in found.claim and "2 cells" in found.claim
    assert "3e-7" in found.evidence


def test_a_turned_class_of_another_precision_is_its_tolerance_s_matter() -> None:
    found = findings(*TURNED)
    [outputs] = found["outputs"]
    assert not outputs.alarm and "int8-dynamic" in found["runtime"][0].scope
    assert "framework" not in outputs.claim and "converted" in outputs.claim


def test_each_precision_is_held_beside_what_it_was_compared_with() -> None:
    groups = context(*FAR).of("infer")
    assert sorted((g.cell.precision, worst(g, "max_abs_difference")) for g in groups) == [
        ("fp16", 2e-3),
        ("fp32", 3e-7),
        ("fp32", 3e-7),
    ]
    found = only("outputs", *FAR)
    whole, converted = found.claim.split("; ")
    assert "2 cells" in whole and "framework" in whole
    assert "1 cell" in converted and "framework" not in converted
    near, far = found.evidence.split("; ")
    assert "3e-7" in near and "0.002" in far and "converted" in far


def test_outputs_that_nobody_compared_are_counted() -> None:
    found = only("outputs", *PARTLY)
    assert "2 cells" in found.claim and "1 cell" in found.evidence
    assert "rust" in found.claim and "1 of 2" in found.claim and "2 of 2" not in found.claim
