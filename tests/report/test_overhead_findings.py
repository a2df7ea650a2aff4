"""What is said of calls and of the published overhead of calls."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import runs
from option_runs import thesis_runs
from said_of_records import Sets, context, findings, only, prose, ratios

from transect.analysis.serving import beyond
from transect.domain.record import Record
from transect.report.findings.runtimes import Nearness


def calls(**latencies: float) -> list[Record]:
    return [
        record
        for name, latency in latencies.items()
        for record in runs(name, latency, workload="identity-1k", exporter="onnx")
    ]


def settings(equal: float, thesis: float) -> list[Record]:
    """Make ratios to C++, which takes 102 us with its language's defaults."""
    return thesis_runs(equal=equal * 1e-4, thesis=thesis * 1.02e-4)


# Ratios under equal settings and under the thesis's, and what is said of both.
SLOWER, NOT_SLOWER = "settings made it slower", "did not make it"
CALLS, LEFT, NOTHING_LEFT = "not calls through", "times is left", "is not slower"
EFFECTS = {
    (1.08, 1.05): (NOT_SLOWER, LEFT),
    (1.09, 1.11): (SLOWER, LEFT),
    (1.09, 0.9): (NOT_SLOWER, LEFT),
    (1.02, 2.3): (SLOWER, CALLS),
    (1.0, 0.9): (NOT_SLOWER, NOTHING_LEFT),
    (0.8, 0.9): (SLOWER, NOTHING_LEFT),
    (1.4, 2.3): (SLOWER, LEFT),
}
SETS = Sets(
    thesis=thesis_runs,
    nothing_left=lambda: thesis_runs(equal=1.0001e-4),
    alike=lambda: settings(1.08, 1.08),
    one_run=lambda: [record for record in thesis_runs() if record.cell.repeat == 0],
    equal_only=lambda: [*runs("cpp", 1e-4), *runs("rust", 1.01e-4)],
    calls=lambda: calls(python=6e-6, c=1e-6, rust=1.001e-6, go=3e-6),
    calls_alike=lambda: calls(c=1e-6, rust=1.001e-6),
)


def test_prose(snapshot: Any) -> None:
    told = {f"{equal} and {thesis}": only("FFI overhead", *settings(equal, thesis)).claim for equal, thesis in EFFECTS}
    assert prose(SETS, "FFI overhead", "call") | told == snapshot


def test_the_thesis_s_settings_and_equal_ones_stand_in_one_sentence() -> None:
    found = SETS.only("FFI overhead", "thesis")
    # Under the thesis's settings, equal ones, one thread alone and basic optimisations alone.
    assert ratios(found) == pytest.approx([2.1 / 1.02, 1.01, 1.9 / 1.01, 1.0002], rel=2e-3)
    assert [one.equal for one in found.comparisons] == [False, True, False, True]
    for words in (SLOWER, CALLS, "intra_op_num_threads=1", "graph_optimization_level=basic"):
        assert words in found.claim
    assert found.confidence == "confirmed"
    assert found.scope == "on cpu, batch 1, 2 threads, from torch-dynamo"
    assert "thesis-rust" in found.evidence and "language-defaults" in found.evidence


def test_without_a_difference_under_equal_settings_calls_are_not_the_cause() -> None:
    found = SETS.only("FFI overhead", "nothing_left")
    assert found.comparisons[1].equal and SLOWER in found.claim and CALLS in found.claim
    assert LEFT not in found.claim and found.confidence == "confirmed"


@pytest.mark.parametrize(("given", "said"), EFFECTS.items())
def test_what_the_settings_do_is_told_by_both_ratios(given: tuple[float, float], said: tuple[str, str]) -> None:
    equal, thesis = given
    found = only("FFI overhead", *settings(equal, thesis))
    assert found.confidence == "confirmed"
    assert ratios(found)[:2] == pytest.approx([thesis, equal], rel=2e-3)
    every = (SLOWER, NOT_SLOWER, CALLS, LEFT, NOTHING_LEFT)
    assert [words for words in every if words in found.claim] == list(said)
    if LEFT in said:
        assert found.claim.count(f"{equal:.3f} times" if equal < 1.1 else f"{equal} times") == 2


@pytest.mark.parametrize("name", ["alike", "one_run"])
def test_ratios_that_are_not_apart_leave_it_open_what_the_settings_do(name: str) -> None:
    found = SETS.only("FFI overhead", name)
    assert "settings do cannot" in found.claim and found.confidence == "inconclusive"
    assert (LEFT in found.claim) is (name == "alike")


def test_without_the_thesis_s_settings_only_equal_ones_are_judged() -> None:
    found = SETS.only("FFI overhead", "equal_only")
    assert Nearness.NEAR.value in found.claim and "not run" in found.claim
    assert found.confidence == "provisional" and len(found.comparisons) == 1
    assert "no setting was" in found.evidence


# What a call costs.


def test_calls_are_ranked_by_what_they_take_beyond_c() -> None:
    found = SETS.findings("calls")
    [call] = found["call"]
    made = context(*SETS["calls"])
    rows = {row.group.cell.runtime: row for row in beyond(made.of("infer"), made.floors)}
    taken = {name: row.excess.value for name, row in rows.items() if row.excess}
    assert taken == pytest.approx({"go": 2e-6, "python": 5e-6, "rust": 1e-9}, rel=1e-2, abs=2e-9)
    assert call.claim.index("go 2") < call.claim.index("python 5") < call.claim.index("rust")
    assert "from C: rust." in call.claim and "1 µs in C" in call.claim
    assert call.confidence == "confirmed" and "c 1.0" in call.evidence
    assert "runtime" not in found, "a model that computes nothing serves nobody"


def test_without_c_and_with_noise_alone_no_call_is_ranked() -> None:
    assert "call" not in findings(*calls(python=6e-6, rust=1e-6))
    noise = SETS.only("call", "calls_alike")
    assert noise.confidence == "inconclusive" and "beyond" not in noise.claim
