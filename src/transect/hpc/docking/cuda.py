"""CUDA: a work-item is a thread that keeps its poses in registers."""

from __future__ import annotations

from typing import ClassVar

from transect.hpc.docking.base import PROGRAMMING_MODELS, WORK_ITEMS, ProgrammingModel


@PROGRAMMING_MODELS.register("cuda")
class Cuda(ProgrammingModel):
    """CUDA C++, compiled by the machine's nvcc or the pinned one from PyPI."""

    name = "cuda"
    environment = "docking-cuda"
    executable = "transect-docking-cuda"
    devices = ("cuda",)
    per_item = WORK_ITEMS
    # As many as registers of a thread hold with room for others.
    typical: ClassVar[dict[str, int]] = {"cuda": 4}
    work_groups = True
