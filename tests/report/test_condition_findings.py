"""What is said of conditions and outputs of runtimes: equal or not, right or not."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import KERNELS, load_record, runs, seen
from option_runs import thesis_runs
from runtime_reports import findings, only

from transect.domain.record import Cause, Status

WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "3 elements are NaN"}


# Conditions.


def test_equal_conditions_are_firm_where_all_runtimes_tell_them() -> None:
    found = only("conditions", *runs("cpp", 1e-4), *runs("rust", 1e-4), *runs("torch-eager", 1e-3))
    assert "the same session options and the same 2 kernels in all runtimes." in found.claim
    assert found.sureness == "firm" and "at 1 point with 2 runtimes" in found.evidence


def test_one_that_tells_nothing_is_named() -> None:
    quiet = runs("java", 1e-4, told=False)
    found = only("conditions", *runs("cpp", 1e-4), *runs("rust", 1e-4), *quiet)
    assert "java tell nothing" in found.claim and found.sureness == "tentative"


def test_older_records_tell_nothing_and_nothing_is_said() -> None:
    assert "conditions" not in findings(
        *runs("cpp", 1e-4, told=False), *runs("rust", 1e-4, told=False)
    )


def test_who_had_other_options_or_kernels_is_named_with_both() -> None:
    other = [*KERNELS, "Cast CPUExecutionProvider"]
    found = only(
        "conditions", *runs("cpp", 1e-4), *runs("rust", 1e-4),
        *runs("java", 1e-4, details={"session_options_seen": seen(enable_mem_pattern=False),
                                     "options_not_set": ["enable_mem_pattern"]}),
        *runs("go", 1e-4, details={"kernels": {"count": 3, "names": other, "digest": "cd"}}),
    )  # fmt: skip
    assert "java had enable_mem_pattern False and not True (at 1 of 1 point)" in found.claim
    assert "go ran 3 kernels and not 2, with Cast CPUExecutionProvider" in found.claim
    assert found.sureness == "firm" and "could not set: java enable_mem_pattern" in found.evidence


def test_of_a_draw_cpp_is_the_usual_one() -> None:
    found = only(
        "conditions", *runs("cpp", 1e-4),
        *runs("a-first", 1e-4, details={"kernels": {"count": 9, "names": [], "digest": "zz"}}),
    )  # fmt: skip
    assert "a-first ran 9 kernels and not 2" in found.claim


def test_other_sets_of_options_are_meant_to_differ() -> None:
    under_load = [load_record(name, 100.0, 1, 9000.0) for name in ("cpp", "rust")]
    found = only("conditions", *thesis_runs(), *under_load)
    assert "conditions were equal" in found.claim and found.sureness == "firm"


# Outputs.


@pytest.mark.parametrize("fields", [WRONG, {}], ids=["failed", "marked ok"])
def test_a_nan_has_no_latency_and_is_named(fields: dict[str, Any]) -> None:
    bad = runs("rust", 1e-9, metrics={"nonfinite_outputs": 3}, fields=fields)
    found = findings(*runs("cpp", 1e-4), *runs("c", 1.2e-4), *bad)
    [outputs] = found["outputs"]
    assert "1 of 3 cells of runtimes gives a wrong output" in outputs.claim
    assert "rust · from torch-dynamo" in outputs.claim and "3 NaN or infinite" in outputs.evidence
    assert not any("rust" in one.claim for one in found["runtime"])
    assert "FFI overhead" not in found


def test_right_outputs_are_said_to_be_right_with_their_distance() -> None:
    found = only("outputs", *runs("cpp", 1e-4), *runs("rust", 1e-4))
    assert "all 2 cells of runtimes in fp32 give the framework's outputs." in found.claim
    assert "3e-7" in found.evidence


def test_a_turned_class_of_another_precision_is_its_tolerance_s_matter() -> None:
    turned = {"top1_agreement": 0.99}
    found = findings(*runs("cpp", 1e-4, precision="int8-dynamic", metrics=turned),
                     *runs("c", 1.2e-4, precision="int8-dynamic", metrics=turned))  # fmt: skip
    assert "on cpu, int8-dynamic, batch 1" in found["runtime"][0].scope
    assert "all 2 cells of runtimes in other precisions" in found["outputs"][0].claim
    assert "of the converted file" in found["outputs"][0].claim
    assert "framework" not in found["outputs"][0].claim


def test_each_precision_is_held_beside_what_it_was_compared_with() -> None:
    far = runs("cpp", 1e-4, precision="fp16", metrics={"max_abs_difference": 2e-3})
    found = only("outputs", *runs("cpp", 1e-4), *runs("rust", 1e-4), *far)
    assert "all 2 cells of runtimes in fp32 give the framework's" in found.claim
    assert "; all 1 cells" not in found.claim and "; the 1 cell of runtimes in oth" in found.claim
    assert "difference 3e-7, each" in found.evidence
    assert "difference 0.002 of the converted file" in found.evidence


def test_outputs_that_nobody_compared_are_counted() -> None:
    partly = {"outputs_compared": 1, "outputs_expected": 2}
    none = [record.model_copy(update={"metrics": [m for m in record.metrics if m.name == "latency"]})
            for record in runs("go", 1e-4)]  # fmt: skip
    whole = {"outputs_compared": 2, "outputs_expected": 2}
    found = only("outputs", *runs("cpp", 1e-4, details=whole),
                 *runs("rust", 1e-4, details=partly), *none)  # fmt: skip
    assert "all 2 cells" in found.claim and "1 cell not compared" in found.evidence
    assert "compared by nobody: tickets · rust" in found.claim
    assert found.claim.endswith("1 of 2 outputs.") and "2 of 2" not in found.claim
