"""Test frameworks for a real Slurm: one that waits to be let go, one that tells its GPUs."""

from __future__ import annotations

import os
import time
from pathlib import Path

from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework


@FRAMEWORKS.register("test-waits")
class Waits(NumpyFramework):
    """Trains as soon as a file `release` lies in the cell's folder; until then it waits."""

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        print(f"waiting, pid {os.getpid()}", flush=True)
        Path(f"waiting-{os.environ.get('SLURM_PROCID', '0')}").touch()
        while not Path("release").exists():
            time.sleep(0.05)
        return NumpyTrainer(plan)


@FRAMEWORKS.register("test-sees-gpu")
class SeesGpu(NumpyFramework):
    """Writes down what its rank was given, and trains on the CPU."""

    def supports(self, cell: Cell) -> str | None:
        return None

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        seen = [os.environ.get(k, "-") for k in ("SLURM_PROCID", "CUDA_VISIBLE_DEVICES")]
        print("SEEN", *seen, flush=True)
        return NumpyTrainer(plan)


# Not a framework of its own: a value that a test edits to see what reruns.
_EDITED = 0


@FRAMEWORKS.register("test-edited")
class Edited(NumpyFramework):
    """The numpy framework in a file that a test edits."""
