"""Numbers that findings state are those that they go by, and sums leave nothing unnamed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from make_framework_records import train_record
from make_records import make_record

from transect.analysis.distribution import DistributionCost
from transect.analysis.groups import group_records
from transect.analysis.load import Loaded
from transect.analysis.scaling import ScalingKind
from transect.domain.cell import Cell
from transect.domain.record import Cause, MetricValue, Record, Status
from transect.report.context import Context
from transect.report.findings.distribution import split_text
from transect.report.findings.finding import Finding
from transect.report.making import all_parts, make_findings
from transect.report.sections.throughput import throughput_chart


def findings(*records: Record) -> dict[str, list[Finding]]:
    """Return the findings by kind."""
    context = Context(Loaded(study="s", records=list(records)), title="t")
    found: dict[str, list[Finding]] = {}
    for one in make_findings(context, all_parts().findings):
        found.setdefault(one.kind, []).append(one)
    assert not context.problems
    return found


def infer(workload: str, latencies: list[float], runtime: str = "r", **axes: Any) -> list[Record]:
    """Synthetic repeats of an inference cell."""
    return [
        make_record(
            Cell.of(
                stage="infer",
                workload=workload,
                runtime=runtime,
                provider="cpu",
                batch=1,
                repeat=n,
                **axes,
            ),
            {"latency": value, "throughput": 1 / value, "top1_agreement": 1.0},
        )
        for n, value in enumerate(latencies)
    ]


def train(steps: list[float], *, workload: str = "w", **more: Any) -> list[Record]:
    """Synthetic repeats of a training cell of one rank: 10 MFLOP and 1 MB a step."""
    details = {"flops_per_step": 1e7, "bytes_per_step": 1e6, "global_batch": 10,
               "quality": {"metric": "accuracy", "target": 0.3, "reached": True}}  # fmt: skip
    fields = {name: more.pop(name) for name in ("status", "cause", "message") if name in more}
    return [
        make_record(
            Cell.of(stage="train", workload=workload, framework="torch", strategy="single",
                    batch=10, repeat=n, **more),
            {"step_time": step, "samples_per_second": 10 / step, "time_to_quality": 50 * step,
             "equality_ratio": 0.5},
            details=details, **fields,
        )
        for n, step in enumerate(steps)
    ]  # fmt: skip


def bench(threads: int = 1) -> list[Record]:
    """10 GFLOP/s and 10 GB/s."""
    return [
        make_record(Cell.of(stage="bench", benchmark=name, threads=threads),
                    [MetricValue.of(metric, 1e10, label)])
        for name, metric, label in (("gemm", "flops", "fp32"), ("stream", "memory_bandwidth", "triad"))
    ]  # fmt: skip


def test_the_noise_finding_states_the_floor_of_each_workload() -> None:
    found = findings(
        *infer("quiet", [1.0, 1.04]), *infer("loud", [1.0, 1.72]), *infer("quiet", [3.0], "other")
    )
    [noise] = found["noise"]
    assert "differ by 4.0 % (quiet) to 72.0 % (loud) in latency and" in noise.text
    assert "latency: loud 72.0 %, quiet 4.0 %" in noise.evidence
    assert "throughput: loud 72.0 %, quiet 4.0 %" in noise.evidence
    assert "decides which differences count" in noise.text
    # The floor stands where it is used, and it is the same.
    [latency] = [one for one in found["runtime"] if "batch 1" in one.text and "quiet" in one.text]
    assert "noise floor of 4.0 %" in latency.evidence


def test_a_floor_that_is_lent_says_so() -> None:
    [noise] = findings(*infer("loud", [1.0, 1.72]), *infer("once", [1.0]))["noise"]
    assert "differ by 72.0 % in latency" in noise.text
    assert "latency: loud 72.0 %, once 72.0 % (from other workloads: it has no repeats)" in (
        noise.evidence
    )
    # One pair of each of two metrics.
    assert "in 2 A/A pairs" in noise.evidence


def test_every_cause_is_counted() -> None:
    causes = [Cause(name) for name in (
        "crash", "timeout", "killed", "unsupported", "out-of-memory", "bad-input", "diverged",
        "scheduler",
    )]  # fmt: skip
    bad = [
        make_record(Cell.of(stage="bench", benchmark="b", threads=n), status=Status.FAILED, cause=c)
        for n, c in enumerate(causes, 1)
    ]
    [coverage] = findings(*bad)["coverage"]
    assert "more" not in coverage.evidence
    assert all(f"1 {cause.value}" in coverage.evidence for cause in causes)


def test_a_floor_is_stated_as_findings_use_it() -> None:
    # The second start takes twice as long for all: seed by seed, that is no noise.
    records = [
        *train([0.1, 0.2]), *train([0.11, 0.221], threads=2), *train([0.3, 0.6], threads=3),
    ]  # fmt: skip
    context = Context(Loaded(study="s", records=records), title="t")
    kind = context.of("train")[0].kind
    floor = context.floors.paired("train", "w", "time_to_quality", kind)
    assert floor is not None and floor.relative < 0.02
    [noise] = findings(*records)["noise"]
    stated = re.search(r"time to quality \(compared seed by seed\): w ([\d.]+) %", noise.evidence)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(100 * floor.relative, abs=0.05)


def test_a_difference_that_is_none_states_its_floor_too() -> None:
    records = [*infer("w", [1.0, 1.3, 1.01]), *infer("w", [1.35, 1.2, 1.31], "other")]
    [latency] = [one for one in findings(*records)["runtime"] if "batch 1" in one.text]
    assert re.search(r"noise floor of \d", latency.evidence)
    apart = [*infer("w", [1.0, 1.001, 1.6]), *infer("w", [1.4, 1.41, 1.42], "other"),
             *infer("w", [9.0 * 1.001**n for n in range(30)], "steady")]  # fmt: skip
    [latency] = [one for one in findings(*apart)["runtime"] if "batch 1" in one.text]
    assert re.search(r"interval .* noise floor of \d.* can be ruled out", latency.evidence)


@pytest.mark.parametrize(
    ("parts", "cost", "text"),
    [
        ((0.16, 0.55, 0.01), 0.7589, "16 % waiting for messages, 55 % slower computing, 1 % input, "
         "4 % unexplained"),
        ((0.16, 0.59, 0.01), 0.7589, "16 % waiting for messages, 59 % slower computing, 1 % input"),
        # Rounding alone: 0.4 three times is 1, as the whole is written.
        ((0.004, 0.004, 0.004), 0.012, "0 % waiting for messages, 0 % slower computing, 0 % input, "
         "1 % unexplained"),
        ((0.3, -0.05, 0.0), 0.2, "30 % waiting for messages, −5 % slower computing, 0 % input, "
         "−5 % unexplained"),
        ((None, 0.1, None), 0.5, "10 % slower computing, 40 % not told"),
        ((None, None, None), 0.5, "50 % not told"),
        ((None, 0.5, None), 0.5, "50 % slower computing, nothing left for what is not told"),
    ],
)  # fmt: skip
def test_the_parts_of_a_cost_add_up_as_they_are_written(
    parts: tuple[float | None, ...], cost: float, text: str
) -> None:
    [group] = group_records([train_record("torch", "ddp", 2, 0)])
    waited, computing, given = parts
    found = split_text(
        DistributionCost(
            group=group, base=group, scaling=ScalingKind.STRONG, ideal_s=1.0, step_s=1 + cost,
            cost=cost, waited=waited, computing=computing, input=given, floor=None,
        )
    )  # fmt: skip
    assert found == text
    shares = [int(share.replace("−", "-")) for share in re.findall(r"(−?\d+) %", found)]
    assert sum(shares) == round(100 * cost)


def test_a_cell_above_its_bound_names_itself_and_the_bound() -> None:
    # The bound is 1 ms: 10 MFLOP at 10 GFLOP/s.
    records = [*bench(), *train([0.0008, 0.00081, 0.00079]), *train([0.002], workload="slow")]
    [above] = findings(*records)["bound"]
    assert above.text.startswith("1 cell is faster than a bound allows, so that bound is wrong: w ")
    assert "reaches 125 % of the peak FLOP/s of gemm with 1 thread" in above.text
    assert "step 800 µs, bound 1 ms" in above.evidence and "slow" not in above.text
    assert (above.subject, above.sureness) == ("study", "firm")
    # Not the fastest of its workload, and named all the same.
    faster = [*bench(), *bench(4), *train([0.0008]), *train([0.0005], threads=4, workload="w")]
    for record in faster[-1:]:
        record.details["flops_per_step"] = 1e6
    [above] = findings(*faster)["bound"]
    assert "1 cell is" in above.text and "1 thread" in above.text


def test_nothing_above_its_bound_is_nothing_to_say() -> None:
    assert "bound" not in findings(*bench(), *train([0.001, 0.0011]))
    # A wrong result is no reason to doubt a bound.
    wrong = train([0.0001], status=Status.FAILED, cause=Cause.WRONG_RESULT)
    assert "bound" not in findings(*bench(), *wrong)


def test_inference_and_memory_are_held_against_their_bound_too() -> None:
    records = infer("w", [0.001], threads=1)
    records[0].details.update(flops_per_run=1e6, bytes_per_run=2e7)
    [above] = findings(*bench(), *records)["bound"]
    assert "reaches 200 % of the memory bandwidth of stream with 1 thread" in above.text


def test_the_throughput_table_draws_no_share_above_one_silently() -> None:
    context = Context(Loaded(study="s", records=[*bench(), *train([0.0008])]), title="t")
    chart = throughput_chart(context, "w", context.of("train"))
    assert chart is not None
    assert "125.0 %: the bound is wrong" in repr(chart)


def test_a_diverged_cell_reaches_nothing_and_is_no_wrong_result() -> None:
    what = (
        "the loss ends at 9517 (median of its last 5 steps), more than 4 times the 1 of its first"
    )
    bad = train([0.001, 0.0011], status=Status.FAILED, cause=Cause.DIVERGED, message=what)
    found = findings(*bad)
    [fastest] = found["fastest"]
    assert "reaches" not in fastest.text and "no trainer finished" in fastest.text
    assert "1 for a loss that diverged" in fastest.evidence
    assert "wrong result" not in fastest.evidence
    # It follows its reference: that is not the trainer's fault.
    [equality] = found["equality"]
    assert equality.text.startswith("All 2 training runs follow the reference")
    assert "2 runs that follow it diverged, as it does" in equality.evidence
    # Not finite: nothing was compared.
    nan = [record.model_copy(update={"metrics": []}) for record in bad]
    assert findings(*nan)["equality"][0].text.startswith("0 of 2")


def test_superlinear_efficiencies_state_their_floor() -> None:
    alone = train([0.1, 0.101])
    many = train([0.01, 0.0101], ranks_per_node=2)
    for record in many:
        record.details["quality"] = {}
    [odd] = findings(*alone, *[
        r.model_copy(update={"cell": r.cell.model_copy(update={"strategy": "ddp"})}) for r in many
    ])["suspect"]  # fmt: skip
    assert re.search(r"noise floor \d", odd.evidence)
