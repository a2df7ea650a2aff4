"""Which runtimes train, and what keeps one from a retraining."""

from __future__ import annotations

from transect.domain.axes.retrain import RetrainCell
from transect.runtimes import RUNTIMES

EVALUATION = "python"


def trains(name: str) -> bool:
    """Whether a runtime's program has the contract's mode `train`: its plug-in says `trains`."""
    return bool(getattr(RUNTIMES.get(name), "trains", False))


def cannot_train(name: str, cell: RetrainCell) -> str | None:
    """Return the reason why a runtime cannot do its turn of a cell, or None.

    A plug-in that trains some workloads or optimisers only has a method `trains_on(cell)` that says so.
    """
    if not trains(name):
        return f"{name} runs models and does not train"
    own = getattr(RUNTIMES.get(name), "trains_on", None)
    reason: str | None = own(cell) if own is not None else None
    return reason
