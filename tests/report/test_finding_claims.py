"""Numbers that findings state are those that they go by, and sums leave nothing unnamed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from make_framework_records import train_record
from make_records import make_record
from said_of_records import findings, prose

from factories import bench_cell, infer_cell, train_cell
from transect.analysis.groups import group_records
from transect.analysis.scaling import ScalingKind
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.topics.distribution.facts import DistributionCost
from transect.report.topics.distribution.findings import split_text


def infer(workload: str, latencies: list[float], runtime: str = "r", **axes: Any) -> list[Record]:
    """Synthetic repeats of an inference cell."""
    return [
        make_record(
            infer_cell(runtime, n, workload=workload, **axes),
            {"latency": value, "throughput": 1 / value, "top1_agreement": 1.0},
        )
        for n, value in enumerate(latencies)
    ]


def train(steps: list[float], *, workload: str = "w", **more: Any) -> list[Record]:
    """Synthetic repeats of a training cell of one rank: 10 MFLOP and 1 MB a step."""
    details = {
        "flops_per_step": 1e7,
        "bytes_per_step": 1e6,
        "global_batch": 10,
        "quality": {"metric": "accuracy", "target": 0.3, "reached": True},
    }
    fields = {name: more.pop(name) for name in ("status", "cause", "message") if name in more}
    return [
        make_record(
            train_cell("torch", n, workload=workload, batch=10, **more),
            {"step_time": step, "samples_per_second": 10 / step, "time_to_quality": 50 * step, "equality_ratio": 0.5},
            details=details,
            **fields,
        )
        for n, step in enumerate(steps)
    ]


def bench(threads: int = 1) -> list[Record]:
    """10 GFLOP/s and 10 GB/s."""
    return [
        make_record(bench_cell(name, threads=threads), [MetricValue.of(metric, 1e10, label)])
        for name, metric, label in (("gemm", "flops", "fp32"), ("stream", "memory_bandwidth", "triad"))
    ]


NOISY = [*infer("quiet", [1.0, 1.04]), *infer("loud", [1.0, 1.72]), *infer("quiet", [3.0], "other")]
LENT = [*infer("loud", [1.0, 1.72]), *infer("once", [1.0])]
# The second start takes twice as long for all: seed by seed, that is no noise.
SEEDS = [*train([0.1, 0.2]), *train([0.11, 0.221], threads=2), *train([0.3, 0.6], threads=3)]
# The bound is 1 ms: 10 MFLOP at 10 GFLOP/s.
ABOVE = [*bench(), *train([0.0008, 0.00081, 0.00079]), *train([0.002], workload="slow")]
DIVERGED = train(
    [0.001, 0.0011],
    status=Status.FAILED,
    cause=Cause.DIVERGED,
    message="the loss ends at 9517 (median of its last 5 steps), more than 4 times the 1 of its first",
)


def test_prose(snapshot: Any) -> None:
    noise = {"own floors": NOISY, "a lent floor": LENT, "seed by seed": SEEDS}
    assert prose(noise, "noise") == snapshot(name="noise")
    bounds = {"training": ABOVE, "inference": infer_above(), "two": [*ABOVE, *train([0.0005], workload="x")]}
    assert prose(bounds, "bound") == snapshot(name="bounds")
    diverged = prose({"diverged": DIVERGED}, "fastest", "equality")
    assert diverged == snapshot(name="diverged")


@pytest.mark.parametrize(
    ("parts", "cost", "written"),
    [
        ((0.16, 0.55, 0.01), 0.7589, "16 waiting, 55 slower, 1 input, 4 unexplained"),
        ((0.16, 0.59, 0.01), 0.7589, "16 waiting, 59 slower, 1 input"),
        # Rounding alone: 0.4 three times is 1, as the whole is written.
        ((0.004, 0.004, 0.004), 0.012, "0 waiting, 0 slower, 0 input, 1 unexplained"),
        ((0.3, -0.05, 0.0), 0.2, "30 waiting, −5 slower, 0 input, −5 unexplained"),
        ((None, 0.1, None), 0.5, "10 slower, 40 not"),
        ((None, None, None), 0.5, "50 not"),
        ((None, 0.5, None), 0.5, "50 slower, nothing left"),
    ],
)
def test_the_parts_of_a_cost_add_up_as_they_are_written(
    parts: tuple[float | None, ...], cost: float, written: str
) -> None:
    [group] = group_records([train_record("torch", "ddp", 2, 0)])
    waited, computing, given = parts
    found = split_text(
        DistributionCost(
            group=group,
            base=group,
            scaling=ScalingKind.STRONG,
            ideal_s=1.0,
            step_s=1 + cost,
            cost=cost,
            waited=waited,
            computing=computing,
            input=given,
            floor=None,
        )
    )
    shortened = [part.replace(" %", "").split(" ")[:2] for part in found.split(", ")]
    assert ", ".join(map(" ".join, shortened)) == written
    shares = [int(share.replace("−", "-")) for share in re.findall(r"(−?\d+) %", found)]
    assert sum(shares) == round(100 * cost)


def test_nothing_above_its_bound_is_nothing_to_say() -> None:
    assert "bound" not in findings(*bench(), *train([0.001, 0.0011]))
    # A wrong result is no reason to doubt a bound.
    wrong = train([0.0001], status=Status.FAILED, cause=Cause.WRONG_RESULT)
    assert "bound" not in findings(*bench(), *wrong)


def infer_above() -> list[Record]:
    """An inference of 1 ms that reads 20 MB where 10 MB are possible."""
    [record] = infer("w", [0.001], threads=1)
    record.details.update(flops_per_run=1e6, bytes_per_run=2e7)
    return [*bench(), record]


def test_a_diverged_cell_reaches_nothing_and_is_no_wrong_result() -> None:
    found = findings(*DIVERGED)
    [fastest], [equality] = found["fastest"], found["equality"]
    assert fastest.decision is not None and not fastest.decision.winner
    [left_out] = fastest.decision.left_out
    assert left_out.why.endswith("diverged")
    # It follows its reference: that is not the trainer's fault.
    assert not equality.alarm
    # Not finite: nothing was compared.
    nan = [record.model_copy(update={"metrics": []}) for record in DIVERGED]
    [equality] = findings(*nan)["equality"]
    assert equality.alarm and equality.text.startswith("0 of 2")
