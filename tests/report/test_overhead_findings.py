"""What is said of calls and of the published overhead of calls."""

from __future__ import annotations

import pytest
from make_runtime_records import runs
from option_runs import thesis_runs
from runtime_reports import findings, only

from transect.domain.record import Record


def test_the_thesis_s_settings_and_equal_ones_stand_in_one_sentence() -> None:
    found = only("FFI overhead", *thesis_runs())
    assert "is 2.06 times (95 % interval" in found.claim
    assert "under the thesis's settings and 1.010 times (95 % interval" in found.claim
    # The same within 5 %: nothing is left for calls.
    assert "made it slower, and not calls through its foreign function interface" in found.claim
    assert "changed alone: intra_op_num_threads=1 1.88 times (95 % interval" in found.claim
    assert "No difference can be told with graph_optimization_level=basic, changed" in found.claim
    assert (found.sureness, found.scope) == (
        "firm",
        "on cpu, batch 1, 2 threads, from torch-dynamo",
    )
    assert "thesis-rust" in found.evidence and "language-defaults" in found.evidence


def test_without_a_difference_under_equal_settings_calls_are_not_the_cause() -> None:
    found = only("FFI overhead", *thesis_runs(equal=1.0001e-4))
    assert ": the settings made it slower, and not calls through its foreign" in found.claim
    assert "is left" not in found.claim and found.sureness == "firm"


@pytest.mark.parametrize(
    ("equal", "thesis", "said"),
    [
        (1.08, 1.05, "the settings did not make it slower; a difference of 1.080 times is left"),
        (1.09, 1.11, "the settings made it slower; a difference of 1.090 times is left"),
        (1.09, 0.9, "the settings did not make it slower; a difference of 1.090 times is left"),
        (1.02, 2.3, "the settings made it slower, and not calls through its foreign function"),
        (1.0, 0.9, "the settings did not make it slower; under equal ones it is not slower"),
        (0.8, 0.9, "the settings made it slower; under equal ones it is not slower"),
        (1.4, 2.3, "the settings made it slower; a difference of 1.4 times is left that no"),
    ],
)  # fmt: skip
def test_what_the_settings_do_is_told_by_both_ratios(
    equal: float, thesis: float, said: str
) -> None:
    # C++ takes 102 us with its language's defaults.
    found = only("FFI overhead", *thesis_runs(equal=equal * 1e-4, thesis=thesis * 1.02e-4))
    assert said in found.claim and found.sureness == "firm"


def test_ratios_that_are_not_apart_leave_it_open_what_the_settings_do() -> None:
    same = only("FFI overhead", *thesis_runs(equal=1.08e-4, thesis=1.08 * 1.02e-4))
    assert "what the settings do cannot be told from these runs; a diff" in same.claim
    assert same.sureness == "open"
    once = [record for record in thesis_runs() if record.cell.repeat == 0]
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
