"""transect: measure deep learning across frameworks, node counts and runtimes."""

from __future__ import annotations

import json
import os
import time

__version__ = "0.1.0"
__all__ = ["log_epoch"]


def log_epoch(
    *, epoch: int, metric: float, loss: float | None = None, seconds: float | None = None, samples: int | None = None
) -> None:
    """Tell of an epoch that is over, from a training script that transect runs; elsewhere, and on other ranks, nothing.

    `metric`: of the test set, now. `loss`: of training. `seconds`: of training so far, testing left out; without it the
    time since the script began counts. `samples`: of this epoch, of all ranks together.
    """
    if path := os.environ.get("TRANSECT_EPOCHS"):
        told = {"epoch": epoch, "metric": metric, "loss": loss, "seconds": seconds, "samples": samples}
        # What a framework calls a number may be an array of one.
        line = {name: float(value) for name, value in told.items() if value is not None}
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 one module less to import
            file.write(json.dumps(line | {"at": time.time()}) + "\n")
