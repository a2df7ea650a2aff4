"""Rust: threads of its own."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import LANES, PROGRAMMING_MODELS, ProgrammingModel


@PROGRAMMING_MODELS.register("rust")
class Rust(ProgrammingModel):
    """Rust, loops over arrays of constant length in threads of its standard library."""

    name = "rust"
    environment = "docking-rust"
    executable = "transect-docking-rust"
    schedules = ("static", "dynamic")
    per_item = LANES
    # As of C.
    typical: ClassVar[dict[str, int]] = {"cpu": 64}
    pinning = "cpus"
