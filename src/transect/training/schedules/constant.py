"""The same learning rate in every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.training.schedules import SCHEDULES, Schedule


@SCHEDULES.register("constant")
class Constant(Schedule):
    """The workload's own rate, behind the warm-up if there is one."""

    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Return ones."""
        return np.ones(len(step))
