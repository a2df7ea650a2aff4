"""OpenCL: compiled when it is first called, for whatever platform the machine has."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from transect.domain.paths import ROOT
from transect.hpc.docking.base import PROGRAMMING_MODELS, WORK_ITEMS, ProgrammingModel


@PROGRAMMING_MODELS.register("opencl")
class OpenCL(ProgrammingModel):
    """OpenCL C, compiled at its first call by the first platform with such a device, e.g. PoCL."""

    name = "opencl"
    environment = "docking-opencl"
    devices = ("cpu", "cuda")
    per_item = WORK_ITEMS
    # 16 on a CPU, one register of 512 bits, and 4 on a GPU.
    typical: ClassVar[dict[str, int]] = {"cpu": 16, "cuda": 4}
    work_groups = True

    def code_files(self) -> list[Path]:
        """Return the kernel: no environment compiles it."""
        return [ROOT / "src" / "kernels" / "docking" / "opencl" / "docking.cl"]
