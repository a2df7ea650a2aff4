"""A runtime that trains with a learning rate that is 1 % too large."""

from __future__ import annotations

import json
from pathlib import Path

from transect.runtimes import RUNTIMES
from transect.runtimes.python import PythonRuntime


@RUNTIMES.register("test-wrong-rate")
class WrongRate(PythonRuntime):
    """The runner in Python, told another schedule."""

    def command(self, python: str, arguments: list[str]) -> list[str]:
        if "--schedule" not in arguments:
            return super().command(python, arguments)
        options = dict(zip(arguments[::2], arguments[1::2], strict=True))
        schedule = Path(options["--record"]).with_name("other-schedule.json")
        rate = json.loads(Path(options["--schedule"]).read_text())["lr"]
        schedule.write_text(json.dumps({"lr": 1.01 * rate}))
        options["--schedule"] = str(schedule)
        return super().command(python, [part for pair in options.items() for part in pair])
