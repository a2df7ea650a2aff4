"""What is said of conditions and outputs of runtimes: equal or not, right or not."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import KERNELS, load_record, runs, seen, thesis_runs
from said_of_records import findings, only, prose

from transect.domain.record import Cause, Status

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


def test_prose(snapshot: Any) -> None:
    assert prose(CONDITIONS, "conditions") | prose(OUTPUTS, "outputs") == snapshot
    assert "conditions" not in findings(*runs("cpp", 1e-4, told=False), *runs("rust", 1e-4, told=False))


def test_other_sets_of_options_are_meant_to_differ() -> None:
    under_load = [load_record(name, 100.0, 1, 9000.0) for name in ("cpp", "rust")]
    records = [*thesis_runs(), *under_load]
    assert only("conditions", *records).confidence == "confirmed"


@pytest.mark.parametrize("name", NAN)
def test_a_nan_has_no_latency_and_is_named(name: str) -> None:
    found = findings(*NAN[name])
    [outputs] = found["outputs"]
    assert outputs.alarm and outputs.confidence == "confirmed"
    assert "1 of 3" in outputs.claim and "rust" in outputs.claim and "cpp" not in outputs.claim
    assert "NaN" in outputs.evidence
    assert not any("rust" in one.claim for one in found["runtime"])
    assert "FFI overhead" not in found


def test_a_turned_class_of_another_precision_is_its_tolerance_s_matter() -> None:
    assert not only("outputs", *TURNED).alarm
