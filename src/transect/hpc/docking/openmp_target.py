"""C with OpenMP target: a loop over work-items that a device runs, or the host in its place."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import PROGRAMMING_MODELS, WORK_ITEMS, ProgrammingModel


@PROGRAMMING_MODELS.register("openmp-target")
class OpenMPTarget(ProgrammingModel):
    """C with OpenMP target, on a GPU, or on the CPU where the host itself is the device."""

    name = "openmp-target"
    environment = "docking-c"
    executable = "transect-docking-openmp-target-{compiler}-{device}"
    devices = ("cpu", "cuda")
    compilers = ("gcc", "clang", "nvc")
    per_item = WORK_ITEMS
    # As many as registers of a GPU's thread hold with room for others.
    typical: ClassVar[dict[str, int]] = {"cpu": 4, "cuda": 4}
    work_groups = True
