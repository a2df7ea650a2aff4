"""One classifier.

Of the cells that it takes something from, `shorter` is a run of fewer epochs, with whose state this one goes on.
Leaves in its folder, each file whole or not at all:

| | |
|---|---|
| `state.npz` | with what a longer run, or a second attempt at this one, goes on |
| `probabilities.npz` | of each class, (n, classes) float32, by part |
| `model.onnx` | of a classifier that exports: `x` int64 (batch, length) to `probabilities` |
| `predict.onnx`, `pipeline.json` | the same with its tokeniser, see `transect.text.bundle` |
| `result.json` | metrics and facts |
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.record import Cause, Status, read_record
from transect.measure.intervals import wilson
from transect.onnx_models.results import result
from transect.text import scores
from transect.text.classifiers import CLASSIFIERS, MODEL, STATE, Diverged, Fitted, Task

# Seconds between states.
KEEP_EVERY_S = 10.0
_PARTS = ("train", "validation", "test", "inference")
_SCORED = ("test", "validation")


def read_rows(encode: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return word numbers and classes by part. Raises BadInput where parts that are needed have no tickets."""
    x, y = {}, {}
    for part in _PARTS:
        if (encode / f"x_{part}.npy").is_file():
            x[part] = np.load(encode / f"x_{part}.npy", allow_pickle=False)
            y[part] = np.load(encode / f"y_{part}.npy", allow_pickle=False).astype(np.int64)
    if not len(x.get("train", ())):
        raise BadInput(f"{encode}: the part `train` has no tickets")
    if not any(len(x.get(part, ())) for part in _SCORED):
        raise BadInput(f"{encode}: neither `test` nor `validation` has tickets: nothing can be scored")
    return x, y


def classify(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Train and score one cell into `out`; return its result."""
    return fit(spec, spec["hyperparameters"], folders, out)


def fit(spec: dict[str, Any], hyperparameters: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Train and score into `out`; return the result. `folders` by role, `shorter` if there is one."""
    x, y = read_rows(folders["encode"])
    facts = read_record(folders["encode"] / "record.json").details
    rule, cell = spec["classifier"], Cell.of(**spec["cell"])
    # What this cell itself left got further than what it began with.
    shorter = out if (out / STATE).is_file() else folders.get("shorter")
    task = Task(
        x=x,
        y=y,
        vectors=np.load(folders["embeddings"] / "vectors.npy", allow_pickle=False),
        classes=tuple(facts["classes"]),
        options=rule["options"],
        hyperparameters=hyperparameters,
        seed=spec["seed"] + cell.repeat,
        threads=cell.threads,
        device=cell.device,
        out=out,
        predicted=tuple(part for part in _SCORED if part in x),
        resume=shorter,
        keep_every_s=KEEP_EVERY_S,
    )
    classifier = CLASSIFIERS.get(rule["kind"])
    try:
        fitted = classifier.fit(task)
    except Diverged as error:
        return result(
            status=Status.FAILED,
            cause=Cause.DIVERGED,
            message=str(error),
            details={"history": error.history, "kept_epochs": len(error.history)},
        )
    for part, shares in fitted.probabilities.items():
        if not np.isfinite(shares).all():
            raise BadInput(f"the classifier returned probabilities of `{part}` that are not finite")
    stream = io.BytesIO()
    np.savez(stream, **fitted.probabilities)  # type: ignore[arg-type]
    write_atomic(out / "probabilities.npz", stream.getvalue())
    made = conclude(task, fitted, facts)
    if classifier.exports:
        _bundle(task, spec, made, folders["encode"], cell)
    made["details"]["went_on_from"] = (spec["inputs"].get("shorter") or [None, None])[1]
    return made


def _bundle(task: Task, spec: dict[str, Any], made: dict[str, Any], encode: Path, cell: Cell) -> None:
    """Join the exported classifier with its tokeniser."""
    from transect.text.bundle import write_bundle

    about = {
        "cell": cell.id,
        "kind": spec["classifier"]["kind"],
        "hyperparameters": task.hyperparameters,
        "synthetic": made["details"]["synthetic"],
        "scores": {metric["name"]: metric["value"] for metric in made["metrics"]},
    }
    vocabulary = json.loads((encode / "vocabulary.json").read_text(encoding="utf-8"))
    length = made["details"]["length"]
    write_bundle(task.out, task.out / MODEL, vocabulary, task.classes, length, spec["text"] | {"about": about})


_AT = (1, 2, 3, 5)


def conclude(task: Task, fitted: Fitted, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the result; `facts` are the details of the rows' record. Scores are of `test`; where it has no tickets, of `validation`, and that is told."""
    scored = "test" if len(task.x.get("test", ())) else "validation"
    shares, y = fitted.probabilities[scored], task.y[scored]
    table = scores.confusion(shares, y)
    ranges = scores.calibration(shares, y)
    values: dict[str, float | None] = {"parameters": fitted.parameters}
    if scored == "test":
        low, high = wilson(int(np.trace(table)), len(y))
        values |= {
            "accuracy": scores.accuracy_at(shares, y, 1),
            "accuracy_ci_low": low,
            "accuracy_ci_high": high,
            "accuracy_at_3": scores.accuracy_at(shares, y, 3),
            "macro_f1": scores.macro_f1(table),
            "log_loss": scores.log_loss(shares, y),
            "calibration_error": scores.calibration_error(ranges),
        }
    if len(task.x.get("validation", ())):
        values["validation_accuracy"] = scores.accuracy_at(fitted.probabilities["validation"], task.y["validation"], 1)
        values["validation_log_loss"] = scores.log_loss(fitted.probabilities["validation"], task.y["validation"])
    reached = [share for entry in fitted.history if (share := entry.get("validation_accuracy")) is not None]
    if reached:
        values["best_validation_accuracy"] = max(reached)
    if fitted.history:
        values["train_time"] = sum(entry["seconds"] for entry in fitted.history)
    details = {
        "classes": list(task.classes),
        "scored": scored,
        "confusion": table.tolist(),
        "calibration": ranges,
        "answers": scores.answers(shares, y),
        "at_k": {str(k): scores.accuracy_at(shares, y, k) for k in _AT},
        "history": fitted.history,
        "parameters": fitted.parameters,
        "tickets": {part: len(rows) for part, rows in task.y.items()},
        "majority": float(np.bincount(y).max() / len(y)),
        "synthetic": bool(facts["synthetic"]),
        "bayes_accuracy": facts["bayes_accuracy"],
        "unseen_classes": _unseen(task),
        "length": task.x["train"].shape[1],
        "vocabulary": len(task.vectors),
        "ended": None,
        "best_epoch": None,
        **fitted.details,
    }
    return result(metrics=values, details=details, libraries=_libraries())


def _unseen(task: Task) -> list[str]:
    counts = np.bincount(task.y["train"], minlength=len(task.classes))
    return [name for name, count in zip(task.classes, counts, strict=True) if not count]


def _libraries() -> dict[str, str]:
    import sys

    names = ("torch", "sklearn", "numpy", "onnx")
    return {name: str(sys.modules[name].__version__) for name in names if name in sys.modules}
