"""C with OpenMP: the poses of a work-item are lanes of registers."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import LANES, PROGRAMMING_MODELS, ProgrammingModel


@PROGRAMMING_MODELS.register("openmp")
class OpenMP(ProgrammingModel):
    """C with OpenMP, work-items dealt out to threads and their poses to lanes of registers."""

    name = "openmp"
    environment = "docking-c"
    executable = "transect-docking-openmp-{compiler}"
    compilers = ("gcc", "clang")
    schedules = ("static", "dynamic", "guided")
    per_item = LANES
    # Four registers of 512 bits, which no compiler here has to spill.
    typical: ClassVar[dict[str, int]] = {"cpu": 64}
    pinning = "openmp"
