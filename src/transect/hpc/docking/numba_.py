"""numba: compiled when it is first called."""

from __future__ import annotations

from transect.hpc.docking.base import PROGRAMMING_MODELS, ProgrammingModel


@PROGRAMMING_MODELS.register("numba")
class Numba(ProgrammingModel):
    """Python that is compiled at its first call; blocks of poses in parallel."""

    name = "numba"
    environment = "docking"
    pinning = "cpus"
    per_item = (256,)
