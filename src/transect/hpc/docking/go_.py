"""Go: threads of its own."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import LANES, PROGRAMMING_MODELS, ProgrammingModel


@PROGRAMMING_MODELS.register("go")
class Go(ProgrammingModel):
    """Go, scalar code in goroutines: its compiler has no vectors."""

    name = "go"
    environment = "docking-go"
    schedules: ClassVar[tuple[str, ...]] = ("static", "dynamic")
    per_item: ClassVar[tuple[int, ...]] = LANES
    pinning = "cpus"

    def default_per_item(self, device: str) -> int:
        """Return 64, as of C."""
        return 64

    def program(self, compiler: str, device: str) -> tuple[str, ...]:
        """Return the program."""
        return ("transect-docking-go",)
