"""Julia, where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.paths import ROOT
from transect.hpc.docking.base import LANES, PROGRAMMING_MODELS, ProgrammingModel

_SCRIPT = ROOT / "src" / "kernels" / "docking" / "julia" / "docking.jl"


@PROGRAMMING_MODELS.register("julia")
class Julia(ProgrammingModel):
    """Julia of the machine, compiled at its first call; threads of its own."""

    name = "julia"
    environment = "docking"
    schedules = ("static", "dynamic")
    per_item = LANES
    # As of C.
    typical: ClassVar[dict[str, int]] = {"cpu": 64}

    def program(self, compiler: str, device: str) -> tuple[str, ...]:
        """Return Julia with its script, which wants its threads from Julia itself."""
        return ("julia", "--startup-file=no", "--check-bounds=no", "-O3", "--threads={threads}", str(_SCRIPT))

    def code_files(self) -> list[Path]:
        """Return the script: no environment compiles it."""
        return [_SCRIPT]
