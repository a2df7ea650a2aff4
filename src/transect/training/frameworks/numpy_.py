"""The framework written from scratch: forward, backward and update in numpy."""

from __future__ import annotations

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan, PartFramework, runs_on
from transect.training.frameworks._numpy_part import NumpyPart
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.models import Model
from transect.training.optimisers import OPTIMISERS


@FRAMEWORKS.register("numpy")
class NumpyFramework(PartFramework):
    """Reference and baseline; float64 gives the trajectory that all others must follow."""

    environment = "base"

    @property
    def optimisers(self) -> tuple[str, ...]:
        """Return all: it takes any rule from the rule's own file."""
        return tuple(OPTIMISERS)

    def supports(self, cell: TrainCell) -> str | None:
        """CPU only, in float32 and float64."""
        return runs_on(cell, "numpy")

    def builds(self, model: Model) -> str | None:
        """Any model: each says in numpy what it computes."""
        return None

    def trainer(self, plan: ModelPlan) -> NumpyTrainer:
        """Build the flat buffers."""
        return NumpyTrainer(plan)

    def part_trainer(self, plan: ModelPlan, part: ModelPart) -> NumpyPart:
        """Build those of the part."""
        return NumpyPart(plan, part)

    def libraries(self) -> dict[str, str]:
        """Return numpy and the BLAS it uses."""
        config = np.show_config(mode="dicts")
        blas = config["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "blas": f"{blas['name']} {blas['version']}"}
