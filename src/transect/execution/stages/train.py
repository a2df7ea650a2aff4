"""The train stage: ranks train, their series become one record, checked against the reference."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from transect.domain.files import canonical_json
from transect.domain.record import Cause, MetricValue, Samples, Status
from transect.execution.job import Job, Result
from transect.execution.stages import STAGES
from transect.execution.stages._common import checksums, cores, need, ranks
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.measure.intervals import wilson
from transect.training.costs import step_costs
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, Parameters

__all__ = ["WARMUP_STEPS", "Train"]

# Left out of medians, kept in the samples: caches, allocators and branch predictors settle.
WARMUP_STEPS = 5

_SERIES = ("step", "compute", "communication", "input")


@STAGES.register("train")
class Train:
    """Runs `transect.training.worker` on every rank."""

    measures = True

    def prepare(self, job: Job) -> tuple[str, Request]:
        """Ranks through the launcher that the strategy's rendezvous asks for."""
        need(job, "reference")
        cell = job.cell
        assert cell.strategy
        strategy = STRATEGIES.get(cell.strategy)
        arguments = ("--spec", job.spec_file, "--data", need(job, "data"), "--out", job.folder)
        command = job.module("transect.training.worker", *arguments)
        return ranks(job, command, strategy.rendezvous)

    def inputs(self, job: Job) -> list[str]:
        """Data, start and reference trajectory."""
        data, reference = job.input("data"), job.input("reference")
        start = data / f"start-{job.cell.repeat}.npz"
        return checksums(data / "data.npz", start, reference / "trajectory.npz")

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Merge the ranks' files; name the cause when a rank failed."""
        errors = [json.loads(p.read_text()) for p in sorted(job.folder.glob("rank-*.error.json"))]
        if errors:
            first = errors[0]
            return Result.failed(Cause(first["cause"]), f"rank {first['rank']}: {first['message']}")
        if outcome.code:
            return Result.failed(Cause.CRASH, f"exit code {outcome.code}")
        facts, series = [], []
        for rank in range(job.cell.ranks):
            try:
                facts.append(json.loads((job.folder / f"rank-{rank:03d}.json").read_text()))
                with np.load(job.folder / f"rank-{rank:03d}.npz") as file:
                    series.append({name: file[name] for name in file.files})
            except (OSError, ValueError) as error:
                return Result.failed(Cause.CRASH, f"rank {rank} left no series: {error}")
        return _merge(job, facts, series)


def _merge(job: Job, facts: list[dict[str, Any]], series: list[dict[str, Any]]) -> Result:
    cell = job.cell
    assert cell.workload
    workload = WORKLOADS.get(cell.workload)
    parameters = Parameters.model_validate(job.spec["parameters"])
    by_rank = {name: np.stack([one[name] for one in series]) for name in _SERIES}
    steps = np.arange(by_rank["step"].shape[1])
    # The slowest rank is the step; its own split goes with it.
    slowest = by_rank["step"].argmax(axis=0)
    merged = {f"{name}_time": by_rank[name][slowest, steps] for name in _SERIES}
    loss = np.mean([one["loss"] for one in series], axis=0)
    total = facts[0]["test_total"]
    correct, epoch_end = series[0]["correct"], series[0]["epoch_end"]
    with np.load(job.input("reference") / "trajectory.npz") as file:
        reference, tolerance = file["loss"], file[f"tolerance_{cell.precision}"]
    deviation = np.abs(loss - reference)
    accuracy = correct / total
    reached = np.flatnonzero(accuracy >= parameters.quality_target)
    steady = merged["step_time"][min(WARMUP_STEPS, len(steps) - 1) :]
    median = {name: float(np.median(merged[name][-len(steady) :])) for name in merged}
    low, high = wilson(int(correct[-1]), total)
    values: dict[str, float] = {
        "samples_per_second": cell.batch / median["step_time"],  # type: ignore[operator]
        **median,
        "communication_share": float(
            merged["communication_time"][-len(steady) :].sum() / steady.sum()
        ),
        "first_step_time": float(merged["step_time"][0]),
        "startup_time": max(one["startup_s"] for one in facts),
        "train_time": float(epoch_end[-1]),
        "final_loss": float(loss[-1]),
        "accuracy": float(accuracy[-1]),
        "accuracy_ci_low": low,
        "accuracy_ci_high": high,
        "parameters": facts[0]["parameters"],
        "gradient_bytes": facts[0]["gradient_bytes"],
        "peak_memory": max(one["peak_memory_bytes"] for one in facts),
        "equality_ratio": float((deviation / tolerance).max()),
        "loss_deviation": float(deviation.max()),
    }
    if len(reached):
        first = int(reached[0])
        values["time_to_quality"] = float(epoch_end[first]) + facts[0]["data_to_start_s"]
        values["steps_to_quality"] = (first + 1) * (len(steps) // parameters.epochs)
    arrays = merged | {
        "loss": loss, "reference_loss": reference, "loss_tolerance": tolerance,
        "accuracy": accuracy, "epoch_end": epoch_end,
        **{f"rank_{name}_time": by_rank[name] for name in _SERIES},
    }  # fmt: skip
    np.savez_compressed(job.folder / "samples.npz", **arrays)
    for path in job.folder.glob("rank-*"):
        path.unlink()
    own = cores(job)
    result = Result(
        metrics=[MetricValue.of(n, v) for n, v in values.items() if np.isfinite(v)],
        samples={
            name: Samples(
                unit="s" if name.endswith("_time") or name == "epoch_end" else "1",
                file="samples.npz",
                key=name,
                count=array.size,
            )
            for name, array in arrays.items()
        },
        details={
            "global_batch": cell.batch,
            "warmup_steps": WARMUP_STEPS,
            "cores": own,
            "over_subscribed": _over_subscribed(job, own),
            "quality": {
                "metric": "accuracy",
                "target": parameters.quality_target,
                "reached": bool(len(reached)),
            },
            "reference": job.spec["inputs"]["reference"][1],
            "tolerance": {"precision": cell.precision, "rule": _rule(job)},
            "rank_peak_memory_bytes": [one["peak_memory_bytes"] for one in facts],
            **step_costs(
                workload.layers, workload.sample, cell.batch or 1, cell.ranks, cell.precision
            ),
        },
        libraries=facts[0]["libraries"],
    )
    _judge(result, loss, deviation, tolerance)
    return result


def _over_subscribed(job: Job, cores_per_node: int) -> bool:
    """Whether ranks share cores, on a node or on the one machine that all nodes are."""
    cell, physical = job.cell, job.spec["system"].get("physical_cores")
    if physical is not None and cell.ranks * cell.threads > physical:
        return True
    return cell.ranks_per_node * cell.threads > cores_per_node


def _rule(job: Job) -> str:
    record = json.loads((job.input("reference") / "record.json").read_text())
    rules = record["details"]["rules"]
    text = rules.get(job.cell.precision)
    return str(text if text else canonical_json(rules))


def _judge(result: Result, loss: Any, deviation: Any, tolerance: Any) -> None:
    """Fail the result when the loss is not finite or leaves the reference's tolerance."""
    finite = np.isfinite(loss)
    if not finite.all():
        result.status, result.cause = Status.FAILED, Cause.DIVERGED
        result.message = f"the loss is {loss[np.argmin(finite)]} at step {int(np.argmin(finite))}"
        return
    outside = np.flatnonzero(deviation > tolerance)
    if len(outside):
        step = int(outside[0])
        result.status, result.cause = Status.FAILED, Cause.WRONG_RESULT
        result.message = (
            f"the loss leaves the float64 reference at step {step}: it deviates by "
            f"{deviation[step]:.3g}, allowed are {tolerance[step]:.3g}"
        )
