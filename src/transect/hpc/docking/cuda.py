"""CUDA: a work-item is a thread that keeps its poses in registers."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import PROGRAMMING_MODELS, WORK_ITEMS, ProgrammingModel


@PROGRAMMING_MODELS.register("cuda")
class Cuda(ProgrammingModel):
    """CUDA C++, compiled by the machine's nvcc or the pinned one from PyPI."""

    name = "cuda"
    environment = "docking-cuda"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)
    per_item: ClassVar[tuple[int, ...]] = WORK_ITEMS
    work_groups = True

    def default_per_item(self, device: str) -> int:
        """Return 4: as many as registers of a thread hold with room for others."""
        return 4

    def program(self, compiler: str, device: str) -> tuple[str, ...]:
        """Return the program."""
        return ("transect-docking-cuda",)
