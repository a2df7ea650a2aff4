"""Ranks' series become one result, checked against the float64 reference."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.metrics import Direction, metric
from transect.domain.record import Cause, MetricValue, Samples, Status
from transect.engine.job import Job, Result, cell_of
from transect.engine.stage_helpers import cores, over_subscribed
from transect.measure.footprint import footprint
from transect.measure.intervals import wilson
from transect.measure.turn_series import by_turns
from transect.stages.train.result_equality import Equality, Reference, effective_rate
from transect.stages.train.result_storage import storage_facts
from transect.stages.train.result_times import (
    SERIES_NAMES,
    WARMUP_STEPS,
    bubble_share,
    input_overlap,
    merged_steps,
    overlap_values,
    speed_values,
)
from transect.stages.train.result_updates import OF_EACH_GRADIENT, Updates
from transect.stages.train.result_usage import energy_values, usage_values
from transect.training.costs import step_costs
from transect.training.divergence import divergence
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles
from transect.training.models import Model
from transect.training.module_model import ModuleModel
from transect.training.rank_files import RANK_SERIES
from transect.training.strategies import STRATEGIES
from transect.training.workloads import WORKLOADS, Parameters, model_of

Arrays = dict[str, np.ndarray]


def merge(job: Job, facts: list[dict[str, Any]], series: list[Arrays]) -> Result:
    """Return the result of all ranks' facts and series, in rank order.

    A time that the library does not tell is NaN in the series and stands in no metric.
    """
    cell = cell_of(job, TrainCell)
    model = model_of(WORKLOADS.get(cell.workload), job.input("data"))
    parameters = Parameters.model_validate(job.spec["parameters"])
    strategy = STRATEGIES.get(cell.strategy)
    layout, unchecked = strategy.layout(cell), strategy.unchecked(cell)
    by_rank = {name: np.stack([rank[name] for rank in series]) for name in RANK_SERIES}
    working = {name: times[layout.servers :] for name, times in by_rank.items()}
    apart = bool(unchecked or layout.workers)
    merged = merged_steps(by_rank if apart else working, alone=bool(apart and layout.servers))
    telling = [arrays for arrays, rank_facts in zip(series, facts, strict=True) if rank_facts.get("tells_loss", True)]
    loss = np.mean([rank["loss"] for rank in telling], axis=0)
    reference = None
    not_checkable = unchecked or (model.not_checkable(cell.device) if isinstance(model, ModuleModel) else None)
    if "reference" in job.spec["inputs"] and not_checkable is None:
        reference = Reference(job)
    bubble = np.stack([rank["bubble"] for rank in series])
    values = speed_values(cell.batch, merged) | overlap_values(working, bubble[layout.servers :]) | usage_values(facts)
    values |= _memory(facts) | input_overlap(facts)
    # Who divides layers, not a list of them, has no stages that wait.
    if layout.model_parts > 1 and bubble.any():
        by_rank["bubble"] = bubble
        values["bubble"] = bubble_share(by_rank)
    values |= {
        "startup_time": max(rank["startup_s"] for rank in facts),
        "train_time": float(series[0]["epoch_end"][-1]),
        "final_loss": float(loss[-1]),
        "parameters": facts[0]["parameters"],
        "gradient_bytes": facts[0]["gradient_bytes"],
        "peak_memory": max(rank["peak_memory_bytes"] for rank in facts),
    }
    if all("memory_at_rest_bytes" in rank for rank in facts):
        values["memory_at_rest"] = max(rank["memory_at_rest_bytes"] for rank in facts)
    installed = what_is_installed(job)
    for unit in ("bytes", "files") if installed else ():
        values[f"environment_{unit}"] = sum(part[unit] for part in installed.values())
    quality, reached = _quality(job, model, facts, series[0], parameters)
    values |= quality
    updates = None
    if strategy.counts_gradients:
        updates = Updates(
            layout=layout,
            step_time=merged["step_time"],
            bound=_bound(strategy.settings(cell)),
            series={name: series[0][name] for name in OF_EACH_GRADIENT if name in series[0]},
            ranks=[rank.get("strategy", {}) for rank in facts],
        )
        values |= updates.values()
    equality = None
    if reference is not None:
        with np.load(job.folder / "checked.npz") as file:
            equality = Equality(reference, loss, {n: file[n] for n in file.files}, facts)
        values |= equality.values()
    arrays = merged | {
        "loss": loss,
        model.score: series[0]["score_sum"] / max(1, facts[0]["test_total"]),
        "epoch_end": series[0]["epoch_end"],
        **({"evaluation_time": series[0]["evaluation"]} if "evaluation_time" in values else {}),
        **{f"rank_{SERIES_NAMES.get(name, 'bubble_time')}": times for name, times in by_rank.items()},
    }
    if updates is not None:
        arrays |= updates.series
    if reference is not None:
        arrays |= {"reference_loss": reference.loss, "loss_tolerance": reference.tolerance}
    # A time that no library reports is no series.
    arrays = {name: array for name, array in arrays.items() if not np.isnan(array).all()}
    np.savez_compressed(job.folder / "samples.npz", **arrays)
    for pattern in ("rank-*", "checked.npz", "learning-rates.bin", "synthetic-*.bin"):
        for path in job.folder.glob(pattern):
            path.unlink()
    result = Result(
        metrics=[*(MetricValue.of(n, v) for n, v in values.items() if np.isfinite(v)), *energy_values(facts)],
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
            "steps_per_epoch": facts[0]["steps_per_epoch"],
            "warmup_steps": WARMUP_STEPS,
            "data_to_start_s": _data_to_start(facts),
            **_turns(job, merged["step_time"]),
            "cores": cores(job),
            "over_subscribed": over_subscribed(job),
            "layout": asdict(layout),
            "ranks": [rank.get("strategy", {}) for rank in facts],
            "installed": installed,
            **({"memory": [rank["memory"] for rank in facts]} if any(r.get("memory") for r in facts) else {}),
            "quality": None
            if cell.input == "synthetic"
            else {"metric": model.score, "target": parameters.quality_target, "reached": reached},
            **effective_rate(cell.reduce, layout.replicas),
            **({} if reference is None else reference.facts(job)),
            **({} if equality is None else equality.details()),
            **({} if not_checkable is None else {"not_checkable": not_checkable}),
            **({} if updates is None else {"updates": updates.details()}),
            "rank_peak_memory_bytes": [rank["peak_memory_bytes"] for rank in facts],
            "rank_usage": [rank["usage"] for rank in facts],
            **step_costs(model, parameters, cell.batch, layout, cell.precision),
            **storage_facts(job.input("data"), cell, model, parameters),
        },
        # Ranks may be of two languages; where two tell of one library, rank 0 counts.
        libraries={n: v for rank in reversed(facts) for n, v in rank["libraries"].items()},
    )
    _judge(result, loss, equality)
    if updates is not None and (fault := updates.fault()) and result.status is Status.OK:
        result.status, result.cause, result.message = Status.FAILED, Cause.WRONG_RESULT, fault
    if not_checkable is not None:
        _not_finite(result, job.folder / "weights.npz")
    _diverged(result, loss, reference)
    return result


def _turns(job: Job, step_time: np.ndarray) -> dict[str, Any]:
    if job.turns is None:
        return {}
    # The last steps are in no turn: the training's end follows them.
    taken = step_time[: sum(job.turns["counts"])]
    return {"turns": by_turns(job.turns, "step_time", seconds=taken, mean_seconds=taken)[0]}


def _bound(settings: dict[str, Any]) -> int | None:
    bound = settings.get("staleness")
    return bound if isinstance(bound, int) else None


_MEMORY = {"training_memory": "step_bytes", "offloaded_bytes": "offloaded_bytes", "offload_wait_time": "waited_s"}


def _memory(facts: list[dict[str, Any]]) -> dict[str, float]:
    """Return the most that any rank's steps held, moved, and waited for; nothing where none reports it."""
    memories = [rank.get("memory", {}) for rank in facts]
    known = {name: key for name, key in _MEMORY.items() if all(key in memory for memory in memories)}
    return {name: max(memory[key] for memory in memories) for name, key in known.items()}


def _quality(
    job: Job, model: Model, facts: list[dict[str, Any]], series: Arrays, parameters: Parameters
) -> tuple[dict[str, float], bool]:
    total, sums = facts[0]["test_total"], series["score_sum"]
    if cell_of(job, TrainCell).input == "synthetic" or not total:
        return {}, False
    scores = sums / total
    values = {model.score: float(scores[-1]), "evaluation_time": float(np.median(series["evaluation"]))}
    if model.score == "accuracy":
        low, high = wilson(round(float(sums[-1])), total)
        values |= {"accuracy_ci_low": low, "accuracy_ci_high": high}
    target = parameters.quality_target
    lower_wins = metric(model.score).direction is Direction.LOWER
    reached = np.flatnonzero(scores <= target if lower_wins else scores >= target)
    if len(reached):
        first = int(reached[0])
        values["time_to_quality"] = float(series["epoch_end"][first]) + _data_to_start(facts)
        values["steps_to_quality"] = (first + 1) * facts[0]["steps_per_epoch"]
    return values, bool(len(reached))


def _data_to_start(facts: list[dict[str, Any]]) -> float:
    # Ranks end their start together: others waited in it for the one that loaded its libraries last.
    return min(float(rank["data_to_start_s"]) for rank in facts)


def _judge(result: Result, loss: Any, equality: Equality | None) -> None:
    if equality is None or not np.isfinite(loss).all():
        return
    if fault := equality.fault():
        result.status, result.cause, result.message = Status.FAILED, Cause.WRONG_RESULT, fault


def _not_finite(result: Result, path: Path) -> None:
    with np.load(path) as file:
        broken = [name for name in file.files if not np.isfinite(file[name]).all()]
    if broken and result.status is Status.OK:
        result.status, result.cause = Status.FAILED, Cause.DIVERGED
        result.message = f"the weights are not finite in the end: {', '.join(broken[:3])}"


def _diverged(result: Result, loss: Any, reference: Reference | None) -> None:
    reason = divergence(loss)
    if reason and result.status is Status.OK:
        result.status, result.cause, result.message = Status.FAILED, Cause.DIVERGED, reason
        if reference is not None and divergence(reference.loss):
            result.message += "; the float64 reference diverges as well, so look at the hyper-parameters first"


def what_is_installed(job: Job) -> dict[str, dict[str, int]]:
    """Return `bytes` and `files` of each part; nothing where they are not known, as of loaded modules.

    A program of its own needs no more than its framework names, `program`; all others their whole `environment`
    and the `interpreter` that it borrows from the machine, which the environment's stamp tells.
    """
    cell = cell_of(job, TrainCell)
    files = RankFiles(plan=job.folder, out=job.folder, programs=job.bin, cell=cell)
    framework = FRAMEWORKS.get(cell.framework)
    if isinstance(framework, ProgramFramework) and job.bin is not None:
        named = framework.installed(files)
        if named is not None:
            return {"program": asdict(footprint(named))}
    installed: dict[str, dict[str, int]] = job.environment.get("installed", {})
    return installed
