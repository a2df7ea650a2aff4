"""What a fitted classifier's probabilities say, as metrics and facts of a record."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.measure.intervals import wilson
from transect.onnx_models.results import result
from transect.text import scores
from transect.text.classifiers import Fitted, Task

_AT = (1, 2, 3, 5)


def conclude(task: Task, fitted: Fitted, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the result; `facts` are the details of the rows' record. Scores are of `test`; where it has no tickets, of `valid`, and that is told."""
    scored = "test" if len(task.x.get("test", ())) else "valid"
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
    if len(task.x.get("valid", ())):
        values["valid_accuracy"] = scores.accuracy_at(fitted.probabilities["valid"], task.y["valid"], 1)
        values["valid_log_loss"] = scores.log_loss(fitted.probabilities["valid"], task.y["valid"])
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
    metrics = [{"name": name, "value": one} for name, one in values.items() if one is not None]
    return result(metrics=metrics, details=details, libraries=_libraries())


def _unseen(task: Task) -> list[str]:
    """Return the classes that no training ticket has."""
    counts = np.bincount(task.y["train"], minlength=len(task.classes))
    return [name for name, count in zip(task.classes, counts, strict=True) if not count]


def _libraries() -> dict[str, str]:
    """Return the versions of what computed."""
    import sys

    names = ("torch", "sklearn", "numpy", "onnx")
    return {name: str(sys.modules[name].__version__) for name in names if name in sys.modules}
