"""What is said of calls and of the published overhead of calls."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import runs, thesis_runs
from said_of_records import Sets, context, only, prose, ratios

from transect.analysis.serving import beyond
from transect.domain.record import Record


def calls(**latencies: float) -> list[Record]:
    return [
        record
        for name, latency in latencies.items()
        for record in runs(name, latency, workload="identity-1k", exporter="onnx")
    ]


def settings(equal: float, thesis: float) -> list[Record]:
    """Make ratios to C++, which takes 102 us with its language's defaults."""
    return thesis_runs(equal=equal * 1e-4, thesis=thesis * 1.02e-4)


# Ratios under equal settings and under the thesis's: it made Rust slower or not, and something is left to calls or not.
EFFECTS = ((1.08, 1.05), (1.09, 1.11), (1.09, 0.9), (1.02, 2.3), (1.0, 0.9), (0.8, 0.9), (1.4, 2.3))
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


# What a call costs.


def test_calls_are_ranked_by_what_they_take_beyond_c() -> None:
    found = SETS.findings("calls")
    made = context(*SETS["calls"])
    rows = {row.group.cell.runtime: row for row in beyond(made.of("infer"), made.floors)}
    taken = {name: row.excess.value for name, row in rows.items() if row.excess}
    assert taken == pytest.approx({"go": 2e-6, "python": 5e-6, "rust": 1e-9}, rel=1e-2, abs=2e-9)
    assert "runtime" not in found, "a model that computes nothing serves nobody"
