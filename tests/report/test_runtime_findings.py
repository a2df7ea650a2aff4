"""What is said of runtimes beside each other: with which numbers, how surely, and when not at all."""

from __future__ import annotations

import pytest
from make_runtime_records import infer_record, load_record, runs
from option_runs import with_options
from runtime_reports import findings, only

from transect.domain.record import Cause, Status

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


def test_three_quiet_runs_make_it_firm_two_tentative_and_one_without_a_floor_open() -> None:
    few = only("language", *runs("cpp", 1e-4, 3), *runs("javascript", 1.03e-4, 3))
    assert "95 % interval 1.028 to 1.032" in few.claim and few.sureness == "firm"
    two = only("language", *runs("cpp", 1e-4, 2), *runs("javascript", 1.03e-4, 2))
    assert two.sureness != "firm"
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


# What is compared with what.


def test_neither_load_nor_options_nor_precision_take_part_in_a_race() -> None:
    found = findings(
        *runs("cpp", 1e-4), *runs("rust", 2e-4), *with_options("rust", 1e-6, "basic"),
        *runs("rust", 1e-6, precision="fp16"), load_record("rust", 100.0, 1, 9000.0),
    )  # fmt: skip
    first = next(one for one in found["runtime"] if one.scope == "on cpu, batch 1")
    assert "cpp · from torch-dynamo answers first" in first.claim
    assert "2 times better than rust" in first.claim
    assert any(one.scope == "on cpu, fp16, batch 1" for one in found["runtime"])
    assert not any("options" in one.scope for one in found["runtime"]), (
        "a set is no race of its own"
    )
