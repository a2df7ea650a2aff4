"""Writes a made-up study of retraining: SYNTHETIC records. No number was measured."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
from make_records import HOSTILE, make_record, provenance, write_records

from transect.domain.axes.retrain import RetrainCell
from transect.domain.record import Cause, Record, Samples, Status

# Microseconds of a step.
STEPS_US = {
    "c": 90.0,
    "rust": 92.0,
    "javascript": 140.0,
    "browser": 310.0,
    "python": 120.0,
    "torch-eager": 260.0,
    "torch-compile": 150.0,
    "ort-training": 110.0,
}


def retrain_record(
    runtime: str,
    repeat: int = 0,
    *,
    step_s: float = 1e-4,
    accuracy: float = 0.9,
    ratio: float = 0.02,
    metrics: dict[str, float] | None = None,
    details: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    off: float = 0.0,
    **axes: Any,
) -> Record:
    """Make one synthetic run; `off` is added to the losses of its last turn."""
    given = {"workload": "digits", "optimiser": "sgd", "steps": 40, "batch": 8, **axes}
    cell = RetrainCell(runtime=runtime, provider="cpu", repeat=repeat, **given)
    reference = [2.0 * np.exp(-step / 20) + 0.1 for step in range(cell.steps)]
    last = cell.ends()[-2][1] if len(cell.runtimes) > 1 else 0
    loss = [
        value + 2e-8 * ((step * 7) % 5 - 2) + (off if step >= last else 0.0) for step, value in enumerate(reference)
    ]
    begins = [0, *(end for _, end in cell.ends())]
    turns = [
        {"runtime": name, "begin": begin, "end": end, "first_step": begin, "killed": 0}
        for (name, end), begin in zip(cell.ends(), begins, strict=False)
    ]
    values = {
        "equality_ratio": ratio,
        "loss_deviation": 4e-8,
        "weights_deviation": 1e-7,
        "weights_equality_ratio": ratio / 2,
        "final_loss": loss[-1],
        "accuracy": accuracy,
        "accuracy_ci_low": accuracy - 0.02,
        "accuracy_ci_high": accuracy + 0.02,
        "accuracy_before": 0.4,
        "checkpoint_time": 8e-4,
    }
    if len(cell.runtimes) == 1:
        values |= {
            "step_time": step_s,
            "samples_per_second": cell.batch / step_s,
            "first_step_time": 9 * step_s,
            "session_time": 0.01,
            "peak_memory": 6e7,
        }
    series = {"loss": loss, "reference_loss": reference, "loss_tolerance": [1e-5] * cell.steps}
    samples = {name: Samples(unit="1", values=list(losses), count=len(losses)) for name, losses in series.items()}
    facts = {"turns": turns, "not_checkable_from": None, "resumed_from": [], "score": "accuracy"}
    return make_record(
        cell,
        values | (metrics or {}),
        samples=samples,
        details=facts | (details or {}),
        **{"provenance": provenance("onnxruntime"), **(fields or {})},
    )


def factor_records(
    scores: dict[tuple[str, str, str], float], seeds: int = 6, spread: float = 0.01, **axes: Any
) -> list[Record]:
    """Make the runs of a design: a mean score for each optimiser, rate and runtime.

    A seed shifts all combinations alike, and each a little of its own.
    """
    rng = random.Random(4)
    records = []
    for seed in range(seeds):
        shift = rng.uniform(-5 * spread, 5 * spread)
        for (optimiser, rate, runtime), score in scores.items():
            accuracy = score + shift + rng.uniform(-spread, spread)
            records.append(
                retrain_record(runtime, seed, optimiser=optimiser, rate=rate, accuracy=accuracy, base_epochs=1, **axes)
            )
    return records


def published_like() -> dict[tuple[str, str, str], float]:
    """Scores in which the rate and the optimiser do everything, and the runtime nothing."""
    scores = {}
    for runtime in ("torch-eager", "python", "ort-training"):
        for rate, gain in (("old", 0.0), ("new", 0.2), ("schedule", 0.18)):
            scores["adamw", rate, runtime] = 0.7 + gain / 4
            if runtime != "ort-training":
                scores["sgd", rate, runtime] = 0.45 + gain
    return scores


def lacking(message: str = "momentum: SGDOptimizerV2 has none") -> list[Record]:
    """Make the records of combinations that a runtime does not offer."""
    skipped = {"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": message}
    return [
        retrain_record("ort-training", seed, optimiser="sgd", rate=rate, base_epochs=1, fields=skipped)
        for seed in range(6)
        for rate in ("old", "new", "schedule")
    ]


def write_retrain_study(root: Path, *, seed: int = 5, repeats: int = 6) -> Path:
    """Write `root/retraining`: languages, relays, the factors of a gain, failures."""
    rng, study = random.Random(seed), root / "retraining"
    records: list[Record] = []
    for runtime, micro in STEPS_US.items():
        for repeat in range(repeats):
            step_s = micro * 1e-6 * (1 + rng.gauss(0, 0.01))
            records.append(retrain_record(runtime, repeat, step_s=step_s))
    records += [
        retrain_record("rust>javascript>browser>python"),
        retrain_record(
            "c>python",
            off=0.5,
            ratio=900.0,
            fields={
                "status": Status.FAILED,
                "cause": Cause.WRONG_RESULT,
                "message": "the loss is 0.9 at step 20 " + HOSTILE,
            },
        ),
        retrain_record(
            "go",
            fields={
                "status": Status.FAILED,
                "cause": Cause.DIVERGED,
                "message": "go: the loss is not finite at step 3",
            },
        ),
        *factor_records(published_like(), repeats),
        *lacking(),
    ]
    return write_records(study, *records)
