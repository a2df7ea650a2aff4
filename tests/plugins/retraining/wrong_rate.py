"""A runtime that trains with a learning rate that is 1 % too large."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from transect.runtimes import RUNTIMES
from transect.runtimes.plan_file import Role, read_plan
from transect.runtimes.python import PythonRuntime


@RUNTIMES.register("test-wrong-rate")
class WrongRate(PythonRuntime):
    """The runner in Python, told another schedule."""

    def command(self, python: str, arguments: list[str]) -> list[str]:
        if (path := Path(arguments[-1])).exists():
            for rate in (entry for entry in read_plan(path).of(Role.HYPER) if entry.name == "lr"):
                values = np.memmap(rate.text, "<f8", "r+", rate.offset, rate.shape)
                values *= 1.01
                values.flush()
        return super().command(python, arguments)
