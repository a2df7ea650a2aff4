"""What is said of runtimes beside each other: with which numbers, with which confidence, and when not at all."""

from __future__ import annotations

from typing import Any

import pytest
from make_runtime_records import infer_record, load_record, runs, with_options
from said_of_records import Sets, prose, ratios

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
        one
        for exporter in ("torch-dynamo", "torchscript")
        for name, latency in (("cpp", 1e-4), ("javascript", 1.02e-4))
        for one in runs(name, latency, exporter=exporter)
    ],
    many_models=lambda: [
        one
        for n in range(6)
        for name, latency in (("cpp", 1e-4), ("javascript", 1e-4 * (1 + n / 8)))
        for one in runs(name, latency, workload=f"model-{n}")
    ],
    copies_inside=copies_inside_of_run,
    other_version=lambda: [*javascript(1.03e-4, details={"runtime_version": "1.27.0"}), *runs("rust", 1e-4)],
    pytorch=lambda: pytorch(
        4e-4,
        *runs("python", 2e-4, exporter="torchscript"),
        infer_record("python", 1.0, provider="cuda", fields=SKIPPED),
    ),
    pytorch_on_cuda=lambda: [
        one
        for provider, factor in (("cuda", 22.0), ("cpu", 3.0))
        for name, latency in (("torch-eager", factor * 1e-4), ("python", 1e-4))
        for one in runs(name, latency, provider=provider)
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


def test_three_quiet_runs_have_an_interval_and_two_are_not_confirmed() -> None:
    [few] = SETS.only("language", "three_runs").comparisons
    assert few.decision and (few.decision.low, few.decision.high) == pytest.approx((1.028, 1.032), abs=6e-4)
    assert SETS.only("language", "two_runs").confidence != "confirmed"
    [alone] = SETS.only("language", "one_run").comparisons
    assert alone.decision is None and alone.a.count == 1


def test_neither_load_nor_options_nor_precision_take_part_in_a_race() -> None:
    found = SETS.findings("race")["runtime"]
    first = next(one for one in found if one.scope == "on cpu, batch 1")
    assert first.decision is not None and first.decision.winner.startswith("cpp")
    assert ratios(first) == pytest.approx([0.5], rel=2e-3)
    assert first.decision.gain.startswith("2 times") and "rust" in first.decision.gain
    assert any(one.scope == "on cpu, fp16, batch 1" for one in found)
    assert not any("options" in one.scope for one in found), "a set is no race of its own"
