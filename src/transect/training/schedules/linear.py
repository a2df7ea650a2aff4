"""A straight line from the workload's rate down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.domain.options import Option
from transect.training.schedules import SCHEDULES, Schedule


@SCHEDULES.register("linear", "LinearLR")
class LinearDecay(Schedule):
    """1 - (1 - end) t / T in step t of T, as most transformers are tuned."""

    options = {  # noqa: RUF012 a constant
        "end": Option(default=0.0, min=0, description="what it falls to behind the last step, as a share of the rate")
    }

    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Return them; the last step lies just above the end."""
        return 1 - (1 - float(options["end"])) * step / max(1, steps)
