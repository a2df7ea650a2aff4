"""What is said of runtimes beside each other: with which numbers, how surely, and when not at all."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import EQUAL, KERNELS, infer_record, load_record, runs, seen
from runtime_reports import findings, only

from transect.domain.record import Cause, Record, Status

WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "3 elements are NaN"}
SKIPPED = {"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "no CUDA device here"}


# JavaScript near C++.


@pytest.mark.parametrize(
    ("latency", "verdict"),
    [(1.03e-4, "near it, within 10 %"), (1.5e-4, "more than 10 % slower"),
     (0.5e-4, "more than 10 % faster")],
)  # fmt: skip
def test_javascript_beside_cpp_is_a_ratio_with_its_interval(latency: float, verdict: str) -> None:
    found = only("language", *runs("cpp", 1e-4), *runs("javascript", latency))
    assert found.claim.startswith("the latency of javascript is ")
    assert "95 % interval" in found.claim and f"that of cpp: {verdict}." in found.claim
    assert (found.scope, found.sureness) == ("on cpu, batch 1, 1 thread", "firm")
    assert "tickets.torch-dynamo.javascript.cpu.t1" in found.evidence
    assert "tickets.torch-dynamo.cpp.cpu.t1" in found.evidence


def test_three_runs_make_it_tentative_and_one_without_a_floor_open() -> None:
    few = only("language", *runs("cpp", 1e-4, 3), *runs("javascript", 1.03e-4, 3))
    assert "range 1.028 to 1.032" in few.claim and few.sureness == "tentative"
    alone = only("language", *runs("cpp", 1e-4, 1), *runs("javascript", 1.03e-4, 1))
    assert "one run a side" in alone.claim and "cannot tell" in alone.claim
    assert alone.sureness == "open"


def test_an_edge_within_the_noise_decides_nothing() -> None:
    # Repeats of Python differ by 8 %: 1.05 and 1.15 are as far from the tenth as that.
    loud = [infer_record("python", 1e-4 * t, n) for n, t in enumerate((1.0, 1.08, 1.0, 1.08))]
    for latency in (1.05e-4, 1.15e-4):
        found = only("language", *runs("cpp", 1e-4), *runs("javascript", latency), *loud)
        assert "cannot tell" in found.claim and found.sureness == "open"
    clear = only("language", *runs("cpp", 1e-4), *runs("javascript", 1.3e-4), *loud)
    assert "more than 10 % slower" in clear.claim


def test_an_interval_across_the_tenth_decides_nothing() -> None:
    spread = [infer_record("javascript", 1e-4 * t, n) for n, t in enumerate((1.0, 1.05, 1.1, 1.15,
                                                                             1.2, 1.25))]  # fmt: skip
    found = only("language", *runs("cpp", 1e-4), *spread)
    assert "cannot tell" in found.claim and found.sureness == "open"


def test_nothing_is_near_in_more_noise_than_a_tenth() -> None:
    loud = [
        infer_record("python", 1e-4 * t, n) for n, t in enumerate((1.0, 1.6, 1.2, 1.9, 1.1, 1.5))
    ]
    found = only("language", *runs("cpp", 1e-4), *runs("javascript", 1.01e-4), *loud)
    assert "cannot tell" in found.claim and found.sureness == "open"


def test_without_cpp_nothing_is_said_of_it() -> None:
    found = findings(*runs("javascript", 1e-4), *runs("rust", 1e-4), *runs("python", 1e-4))
    assert "language" not in found and "FFI overhead" not in found


def test_exporters_stand_in_one_sentence_and_many_models_too() -> None:
    both = [
        record for exporter in ("torch-dynamo", "torchscript")
        for name, latency in (("cpp", 1e-4), ("javascript", 1.02e-4))
        for record in runs(name, latency, exporter=exporter)
    ]  # fmt: skip
    claim = only("language", *both).claim
    assert "from torch-dynamo) and 1.020 times" in claim and claim.count("near it") == 1
    many = [
        record for n in range(6) for name, latency in (("cpp", 1e-4), ("javascript", 1e-4 * (1 + n / 8)))
        for record in runs(name, latency, workload=f"model-{n}")
    ]  # fmt: skip
    found = only("language", *many)
    assert found.subject == "study"
    assert "in 6 models: near it, within 10 % in 1 and more than 10 % slower in 5" in found.claim
    assert "from 1.000 times" in found.claim and "for model-5" in found.claim


def test_a_language_that_copies_inside_of_run_is_compared_end_to_end() -> None:
    inside = {"run_includes": ["bind", "copy"]}
    slow = [
        infer_record("javascript", 1.2e-4 * (1 + n / 1000), n, details=inside,
                     metrics={"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": 1.2e-4})
        for n in range(6)
    ]  # fmt: skip
    cpp = runs("cpp", 1e-4, metrics={"end_to_end_time": 1.19e-4})
    found = only("language", *cpp, *slow)
    assert "1.008 times (end to end" in found.claim and "near it" in found.claim
    assert "javascript's Run includes bind and copy" in found.evidence


# Versions.


def test_a_version_that_differs_is_named_and_makes_no_ratio_firm() -> None:
    old = runs("javascript", 1.03e-4, details={"runtime_version": "1.27.0"})
    found = findings(*runs("cpp", 1e-4), *runs("rust", 1e-4), *old)
    [versions] = found["versions"]
    assert "javascript ran 1.27.0" in versions.claim and "cpp and rust ran 1.29.0" in versions.claim
    assert versions.sureness == "firm"
    [language] = found["language"]
    assert language.sureness == "tentative"
    assert "crosses versions: 1.27.0 and 1.29.0" in language.evidence


def test_a_baseline_has_a_version_of_its_own() -> None:
    assert "versions" not in findings(*runs("cpp", 1e-4), *runs("torch-eager", 1e-3))


# Ten times PyTorch.


def test_the_factor_over_pytorch_names_exporter_device_and_what_was_not_measured() -> None:
    skipped = infer_record("python", 1.0, provider="cuda", fields=SKIPPED)
    found = only(
        "framework", *runs("torch-eager", 4e-4), *runs("python", 1e-4),
        *runs("python", 2e-4, exporter="torchscript"), skipped,
    )  # fmt: skip
    assert (
        "4 times (95 % interval" in found.claim and "from torch-dynamo) and 2 times" in found.claim
    )
    assert "on cpu that of python: less than 10 times" in found.claim
    assert "on cuda nothing was measured here: no CUDA device here" in found.claim
    assert found.sureness == "firm"


def test_a_factor_on_a_gpu_is_judged_there() -> None:
    records = [
        record for provider, factor in (("cuda", 22.0), ("cpu", 3.0))
        for name, latency in (("torch-eager", factor * 1e-4), ("python", 1e-4))
        for record in runs(name, latency, provider=provider)
    ]  # fmt: skip
    claim = only("framework", *records).claim
    assert "on cuda that of python: 10 times or more" in claim
    assert "on cpu that of python: less than 10 times" in claim
    assert claim.endswith("The published factor is of a GPU.")


def test_a_factor_that_noise_could_bring_to_ten_is_open() -> None:
    loud = [infer_record("rust", 1e-4 * t, n) for n, t in enumerate((1.0, 1.6, 1.2, 1.9, 1.1, 1.5))]
    pair = [*runs("torch-eager", 7e-4), *runs("python", 1e-4)]
    assert "less than 10 times" in only("framework", *pair).claim
    found = only("framework", *pair, *loud)
    assert "cannot tell" in found.claim and found.sureness == "open"


def test_a_factor_of_one_run_without_a_floor_is_open() -> None:
    found = only("framework", *runs("torch-eager", 4e-4, 1), *runs("python", 1e-4, 1))
    assert found.sureness == "open" and "cannot tell" in found.claim
    assert "this study asks for no pair on cuda" in found.claim


# Calls through a foreign function interface.


def _with(name: str, latency: float, options: str, **changed: Any) -> list[Record]:
    """Repeats with another set of options, on two threads."""
    given = {"session_options": {**EQUAL, "intra_op_num_threads": 2, **changed}}
    return runs(name, latency, options=options, threads=2, details=given)


def _thesis(equal: float = 1.01e-4, thesis: float = 2.1e-4) -> list[Record]:
    return [
        *_with("cpp", 1e-4, "equal"), *_with("rust", equal, "equal"),
        *_with("cpp", 1.02e-4, "language-defaults"),
        *_with("rust", thesis, "thesis-rust", intra_op_num_threads=1,
               graph_optimization_level="basic"),
        *_with("rust", 1.9e-4, "one-thread", intra_op_num_threads=1),
        *_with("rust", 1.0102e-4, "basic", graph_optimization_level="basic"),
    ]  # fmt: skip


def test_the_thesis_s_settings_and_equal_ones_stand_in_one_sentence() -> None:
    found = only("FFI overhead", *_thesis())
    assert "is 2.06 times (95 % interval" in found.claim
    assert "under the thesis's settings and 1.010 times (95 % interval" in found.claim
    assert "made it slower; a difference of 1.010 times is left that no setting" in found.claim
    assert "changed alone: intra_op_num_threads=1 1.88 times (95 % interval" in found.claim
    assert "No difference can be told with graph_optimization_level=basic, changed" in found.claim
    assert (found.sureness, found.scope) == (
        "firm",
        "on cpu, batch 1, 2 threads, from torch-dynamo",
    )
    assert "thesis-rust" in found.evidence and "language-defaults" in found.evidence


def test_without_a_difference_under_equal_settings_calls_are_not_the_cause() -> None:
    found = only("FFI overhead", *_thesis(equal=1.0001e-4))
    assert ": the settings made it slower, and not calls through its foreign" in found.claim
    assert "is left" not in found.claim and found.sureness == "firm"


@pytest.mark.parametrize(
    ("equal", "thesis", "said"),
    [
        (1.08, 1.05, "the settings did not make it slower; a difference of 1.080 times is left"),
        (1.09, 1.11, "the settings made it slower; a difference of 1.090 times is left"),
        (1.09, 0.9, "the settings did not make it slower; a difference of 1.090 times is left"),
        (1.02, 2.3, "the settings made it slower; a difference of 1.020 times is left"),
        (1.0, 0.9, "the settings did not make it slower; under equal ones it is not slower"),
        (0.8, 0.9, "the settings made it slower; under equal ones it is not slower"),
        (1.4, 2.3, "the settings made it slower; a difference of 1.4 times is left that no"),
    ],
)  # fmt: skip
def test_what_the_settings_do_is_told_by_both_ratios(
    equal: float, thesis: float, said: str
) -> None:
    # C++ takes 102 us with its language's defaults.
    found = only("FFI overhead", *_thesis(equal=equal * 1e-4, thesis=thesis * 1.02e-4))
    assert said in found.claim and found.sureness == "firm"


def test_ratios_that_are_not_apart_leave_it_open_what_the_settings_do() -> None:
    same = only("FFI overhead", *_thesis(equal=1.08e-4, thesis=1.08 * 1.02e-4))
    assert "what the settings do cannot be told from these runs; a diff" in same.claim
    assert same.sureness == "open"
    once = [record for record in _thesis() if record.cell.repeat == 0]
    alone = only("FFI overhead", *once)
    assert "what the settings do cannot be told" in alone.claim and alone.sureness == "open"


def test_without_the_thesis_s_settings_only_equal_ones_are_judged() -> None:
    found = only("FFI overhead", *runs("cpp", 1e-4), *runs("rust", 1.01e-4))
    assert "under equal settings: near it" in found.claim and "were not run" in found.claim
    assert found.sureness == "tentative"
    assert "no setting was changed alone" in found.evidence


# What a call costs.


def _calls(**latencies: float) -> list[Record]:
    return [
        record for name, latency in latencies.items()
        for record in runs(name, latency, workload="identity-1k", exporter="onnx")
    ]  # fmt: skip


def test_calls_are_ranked_by_what_they_take_beyond_c() -> None:
    found = findings(*_calls(python=6e-6, c=1e-6, rust=1.001e-6, go=3e-6))
    [call] = found["call"]
    assert call.claim.startswith(
        "a call on 1\u202f000 numbers takes 1 µs in C; beyond that take go 2"
    )
    assert call.claim.index("go 2") < call.claim.index("python 5") < call.claim.index("rust")
    assert "95 % interval" in call.claim and "not distinguishable from C: rust." in call.claim
    assert call.sureness == "firm" and "end to end: c 1.0" in call.evidence
    assert "runtime" not in found, "a model that computes nothing serves nobody"


def test_without_c_and_with_noise_alone_no_call_is_ranked() -> None:
    assert "call" not in findings(*_calls(python=6e-6, rust=1e-6))
    noise = only("call", *_calls(c=1e-6, rust=1.001e-6))
    assert noise.sureness == "open" and "beyond" not in noise.claim


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
    found = only("conditions", *_thesis(), *under_load)
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


# What is compared with what.


def test_neither_load_nor_options_nor_precision_take_part_in_a_race() -> None:
    found = findings(
        *runs("cpp", 1e-4), *runs("rust", 2e-4), *_with("rust", 1e-6, "basic"),
        *runs("rust", 1e-6, precision="fp16"), load_record("rust", 100.0, 1, 9000.0),
    )  # fmt: skip
    first = next(one for one in found["runtime"] if one.scope == "on cpu, batch 1")
    assert "cpp · from torch-dynamo answers first" in first.claim
    assert "2 times better than rust" in first.claim
    assert any(one.scope == "on cpu, fp16, batch 1" for one in found["runtime"])
    assert not any("options" in one.scope for one in found["runtime"]), (
        "a set is no race of its own"
    )
