"""numpy: arrays of poses by protein atoms."""

from __future__ import annotations

from transect.hpc.docking.base import PROGRAMMING_MODELS, ProgrammingModel


@PROGRAMMING_MODELS.register("numpy")
class Numpy(ProgrammingModel):
    """Arrays of poses by protein atoms, one Python thread for each chunk of poses."""

    name = "numpy"
    environment = "docking"
    pinning = "cpus"
    # As many as share the constants of a pair in the count of operations.
    per_item = (256,)
