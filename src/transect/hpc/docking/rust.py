"""Rust: threads of its own."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import LANES, PROGRAMMING_MODELS, ProgrammingModel


@PROGRAMMING_MODELS.register("rust")
class Rust(ProgrammingModel):
    """Rust, loops over arrays of constant length in threads of its standard library."""

    name = "rust"
    environment = "docking-rust"
    schedules: ClassVar[tuple[str, ...]] = ("static", "dynamic")
    per_item: ClassVar[tuple[int, ...]] = LANES
    pinning = "cpus"

    def default_per_item(self, device: str) -> int:
        """Return 64, as of C."""
        return 64

    def program(self, compiler: str, device: str) -> tuple[str, ...]:
        """Return the program."""
        return ("transect-docking-rust",)
