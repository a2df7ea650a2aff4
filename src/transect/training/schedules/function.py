"""A schedule that a function of the user's gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.errors import FAULTS, BadInput
from transect.domain.options import Option
from transect.training.own_files import member_of
from transect.training.schedules import SCHEDULES, Schedule


@SCHEDULES.register("function")
class Function(Schedule):
    """What `function` in `file` returns for a step and the number of all; in a study `schedule: FILE.py:NAME`.

    The file counts among the inputs of each cell. It may import installed packages, and no other files.
    """

    options = {  # noqa: RUF012 a constant
        "file": Option(default="", description="Python, relative to the study"),
        "function": Option(default="rate", description="takes the step, from 0 on, and the number of steps"),
    }

    def factors(self, options: Mapping[str, Any], step: np.ndarray, steps: int) -> np.ndarray:
        """Call it for each step. Raises BadInput where it raises, or gives no number from 0 on."""
        where = f"{options['file']}:{options['function']}"
        function = member_of(Path(options["file"]), options["function"])
        found = []
        for number in step.astype(int).tolist():
            try:
                factor = float(function(number, steps))
            except FAULTS as error:
                raise BadInput(f"{where}: called with {number}, {steps}: {type(error).__name__}: {error}") from error
            if not (math.isfinite(factor) and factor >= 0):
                raise BadInput(f"{where}: gives {factor} for step {number} of {steps}: expected a number from 0 on")
            found.append(factor)
        return np.array(found, np.float64)
