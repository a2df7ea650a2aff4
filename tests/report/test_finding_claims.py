"""Numbers that findings state are those that they go by, and sums leave nothing unnamed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from make_records import make_record
from said_of_records import findings, prose

from factories import bench_cell, infer_cell, train_cell
from transect.analysis.best import Best, best
from transect.analysis.contrasts import contrast
from transect.analysis.groups import Floors, group_records
from transect.analysis.scaling import ScalingKind
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.engine.best_words import with_open
from transect.report.engine.finding import Finding
from transect.report.topics.distribution.costs import LOST, DistributionCost, split_text
from transect.report.topics.training.words import first_words, unknown_namer
from transect.stats.comparisons import Confidence


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


def cost(lost: tuple[float | None, float | None, float | None], other: float = 0.0) -> DistributionCost:
    """A step of 100 ms without its losses, in ms: waiting, slower computing, input, and what is not explained."""
    [group] = group_records(train([0.1]))
    parts = {part: None if ms is None else ms / 1000 for part, ms in zip(LOST, lost, strict=True)}
    whole = 0.1 + other / 1000 + sum(filter(None, parts.values()))
    return DistributionCost(group=group, base=group, scaling=ScalingKind.STRONG, ideal_s=0.1, step_s=whole, parts=parts)


@pytest.mark.parametrize(
    ("lost", "other", "written"),
    [
        ((16.2, 55.0, 2.0), 9.0, "+16 waiting, +55 slower computing, +2 input, +9 not explained"),
        # What is nothing as it is written is not said; what is gained is.
        ((53.0, -30.4, 0.3), 0.0, "+53 waiting, −30 slower computing"),
        ((None, 20.0, None), 5.0, "+20 slower computing, +5 not told"),
    ],
)
def test_a_sentence_and_its_table_say_the_same_of_what_is_lost(lost: Any, other: float, written: str) -> None:
    found = cost(lost, other)
    assert split_text(found) == written
    assert found.other_s == pytest.approx(other / 1000)


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


def test_a_way_of_which_nothing_is_known_is_not_named_with_the_first() -> None:
    cells = [train_cell("torch", strategy=name, ranks_per_node=2) for name in ("mpi-allreduce", "ddp-gloo")]
    first, other = group_records(make_record(cell, {"time_to_quality": 1.0 + n}) for n, cell in enumerate(cells))
    found, pool = Best(first=first, fastest=first, unknown=(other,)), [first, other]
    words = first_words(found, pool, "1 s")
    assert " or " not in words
    said = Finding(subject="w", claim=f"{words}.", evidence="", confidence=Confidence.CONFIRMED, kind="fastest")
    likely, unsure = with_open(unknown_namer(found, pool), (said, found))
    assert likely == replace(said, confidence=Confidence.PROVISIONAL), "the other may be the first"
    assert [*with_open(unknown_namer(found, pool), (said, replace(found, unknown=())))] == [said]
    assert unsure.confidence is Confidence.INCONCLUSIVE and "as fast as torch" not in unsure.claim
    assert unsure.claim.startswith("whether MPI all-reduce") and "no pair" in unsure.claim
    # What claims nothing that is surer is one sentence with it.
    [both] = with_open(unknown_namer(found, pool), (replace(said, confidence=Confidence.INCONCLUSIVE), found))
    assert both.claim.startswith(words) and "as fast is not known" in both.claim


def test_a_ratio_of_steps_is_said_to_be_one_beside_times_of_whole_trainings() -> None:
    cells = [train_cell(name) for name in ("numpy", "torch")]
    for steps, per_step in ((100.0, True), (120.0, False)):
        records = [
            make_record(
                train_cell(cell.framework, n),
                {
                    "step_time": place + 1 + 0.01 * n,
                    "time_to_quality": 50.0 * (place + 1),
                    "steps_to_quality": steps if place else 100.0,
                },
            )
            for place, cell in enumerate(cells)
            for n in range(4)
        ]
        groups = group_records(records)
        base, other = sorted(groups, key=lambda group: group.cell.framework)
        made = contrast(other, base, Floors(groups), "time_to_quality", varies="framework", by="run")
        found = best([made] if made else [], groups)
        assert found is not None and found.excluded
        assert ("as long per step" in first_words(found, groups, "50 s")) is per_step
