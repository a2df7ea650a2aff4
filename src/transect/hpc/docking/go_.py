"""Go: threads of its own."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import LANES, PROGRAMMING_MODELS, ProgrammingModel


@PROGRAMMING_MODELS.register("go")
class Go(ProgrammingModel):
    """Go, scalar code in goroutines: its compiler has no vectors."""

    name = "go"
    environment = "docking-go"
    executable = "transect-docking-go"
    schedules = ("static", "dynamic")
    per_item = LANES
    # As of C.
    typical: ClassVar[dict[str, int]] = {"cpu": 64}
    pinning = "cpus"
