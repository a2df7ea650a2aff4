"""What is said of runtimes beside each other: conditions, outputs, calls, versions, and how surely."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import KERNELS, infer_record, load_record, runs, seen, thesis_runs, with_options
from said_of_records import Sets, findings, only, prose

from transect.domain.record import Cause, Record, Status

SKIPPED = {"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "no CUDA device here"}
INSIDE = {"run_includes": ["bind", "copy"]}
# Two spreads of repeats: 8 % apart, and up to 90 %.
LOUD, LOUDER = (1.0, 1.08, 1.0, 1.08), (1.0, 1.6, 1.2, 1.9, 1.1, 1.5)


def spread(runtime: str, times: tuple[float, ...], **more: Any) -> list[Record]:
    return [infer_record(runtime, 1e-4 * t, n, **more) for n, t in enumerate(times)]


def javascript(latency: float, amount: int = 6, *others: Record, **more: Any) -> list[Record]:
    """Make C++ of 100 us beside JavaScript."""
    return [*runs("cpp", 1e-4, amount), *runs("javascript", latency, amount, **more), *others]


def pytorch(latency: float, *others: Record, amount: int = 6) -> list[Record]:
    """Make PyTorch beside ONNX Runtime of 100 us."""
    return [*runs("torch-eager", latency, amount), *runs("python", 1e-4, amount), *others]


def copies_inside_of_run() -> list[Record]:
    slow = [
        infer_record(
            "javascript",
            1.2e-4 * (1 + n / 1000),
            n,
            details=INSIDE,
            metrics={"bind_time": 0.0, "copy_time": 0.0, "end_to_end_time": 1.2e-4},
        )
        for n in range(6)
    ]
    return [*runs("cpp", 1e-4, metrics={"end_to_end_time": 1.19e-4}), *slow]


SETS = Sets(
    near=lambda: javascript(1.03e-4),
    slower=lambda: javascript(1.5e-4),
    faster=lambda: javascript(0.5e-4),
    three_runs=lambda: javascript(1.03e-4, 3),
    two_runs=lambda: javascript(1.03e-4, 2),
    one_run=lambda: javascript(1.03e-4, 1),
    # 1.05 and 1.15 are as far from the tenth as repeats of Python are from each other.
    edge_below_in_noise=lambda: javascript(1.05e-4, 6, *spread("python", LOUD)),
    edge_above_in_noise=lambda: javascript(1.15e-4, 6, *spread("python", LOUD)),
    beyond_the_noise=lambda: javascript(1.3e-4, 6, *spread("python", LOUD)),
    across_the_tenth=lambda: [*runs("cpp", 1e-4), *spread("javascript", (1.0, 1.05, 1.1, 1.15, 1.2, 1.25))],
    more_noise_than_a_tenth=lambda: javascript(1.01e-4, 6, *spread("python", LOUDER)),
    exporters=lambda: [
        run
        for exporter in ("torch-dynamo", "torchscript")
        for name, latency in (("cpp", 1e-4), ("javascript", 1.02e-4))
        for run in runs(name, latency, exporter=exporter)
    ],
    many_models=lambda: [
        run
        for n in range(6)
        for name, latency in (("cpp", 1e-4), ("javascript", 1e-4 * (1 + n / 8)))
        for run in runs(name, latency, workload=f"model-{n}")
    ],
    copies_inside=copies_inside_of_run,
    other_version=lambda: [*javascript(1.03e-4, details={"runtime_version": "1.27.0"}), *runs("rust", 1e-4)],
    pytorch=lambda: pytorch(
        4e-4,
        *runs("python", 2e-4, exporter="torchscript"),
        infer_record("python", 1.0, provider="cuda", fields=SKIPPED),
    ),
    pytorch_on_cuda=lambda: [
        run
        for provider, factor in (("cuda", 22.0), ("cpu", 3.0))
        for name, latency in (("torch-eager", factor * 1e-4), ("python", 1e-4))
        for run in runs(name, latency, provider=provider)
    ],
    pytorch_quiet=lambda: pytorch(7e-4),
    pytorch_in_noise=lambda: pytorch(7e-4, *spread("rust", LOUDER)),
    pytorch_once=lambda: pytorch(4e-4, amount=1),
    race=lambda: [
        *runs("cpp", 1e-4),
        *runs("rust", 2e-4),
        *with_options("rust", 1e-6, "basic"),
        *runs("rust", 1e-6, precision="fp16"),
        load_record("rust", 100.0, 1, 9000.0),
    ],
)


def test_prose(snapshot: Any) -> None:
    assert prose(SETS, "language", "versions", "framework") == snapshot


def test_neither_load_nor_options_nor_precision_take_part_in_a_race() -> None:
    found = SETS.findings("race")["runtime"]
    first = next(finding for finding in found if finding.scope == "on cpu, batch 1")
    assert first.decision is not None and first.decision.winner == "ONNX Runtime (C++)"
    assert [pair.ratio.value for pair in first.contrasts] == pytest.approx([2.0], rel=2e-3)
    assert "ONNX Runtime (Rust) takes 2 times as long" in first.short
    assert any(finding.scope == "on cpu, fp16, batch 1" for finding in found)
    assert not any("options" in finding.scope for finding in found), "a set is no race of its own"


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
SILENT = [*PAIR, *runs("java", 1e-4, complete=False)]
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


def test_prose_conditions(snapshot: Any) -> None:
    assert prose(CONDITIONS, "conditions") | prose(OUTPUTS, "outputs") == snapshot
    assert "conditions" not in findings(*runs("cpp", 1e-4, complete=False), *runs("rust", 1e-4, complete=False))


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
    assert not any("rust" in finding.claim for finding in found["runtime"])
    assert "FFI overhead" not in found


def test_a_turned_class_of_another_precision_is_its_tolerance_s_matter() -> None:
    assert not only("outputs", *TURNED).alarm


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
OVERHEAD_SETS = Sets(
    thesis=thesis_runs,
    nothing_left=lambda: thesis_runs(equal=1.0001e-4),
    alike=lambda: settings(1.08, 1.08),
    one_run=lambda: [record for record in thesis_runs() if record.cell.repeat == 0],
    equal_only=lambda: [*runs("cpp", 1e-4), *runs("rust", 1.01e-4)],
    calls=lambda: calls(python=6e-6, c=1e-6, rust=1.001e-6, go=3e-6),
    calls_alike=lambda: calls(c=1e-6, rust=1.001e-6),
)


def test_prose_overhead(snapshot: Any) -> None:
    both = {f"{equal} and {thesis}": only("FFI overhead", *settings(equal, thesis)).claim for equal, thesis in EFFECTS}
    assert prose(OVERHEAD_SETS, "FFI overhead", "call") | both == snapshot


# What a call costs.


def test_calls_are_ranked_by_what_they_take_beyond_c() -> None:
    found = OVERHEAD_SETS.findings("calls")
    [call] = found["call"]
    taken = {pair.group.cell.runtime: pair.ratio.value for pair in call.contrasts}
    assert taken == pytest.approx({"rust": 1.001, "go": 3, "python": 6}, rel=1e-2)
    assert call.claim.index("Go 2.1") < call.claim.index("Python 5.3")
    assert "runtime" not in found, "a model that computes nothing serves nobody"
