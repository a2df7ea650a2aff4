"""C with OpenACC: a loop over work-items that a device runs, or the host in its place."""

from __future__ import annotations

from typing import ClassVar

from transect.domain.axes.bench import BenchCell
from transect.hpc.docking.base import PROGRAMMING_MODELS, WORK_ITEMS, ProgrammingModel


@PROGRAMMING_MODELS.register("openacc")
class OpenACC(ProgrammingModel):
    """C with OpenACC, on a GPU, or on the CPU where the host itself is the device."""

    name = "openacc"
    environment = "docking-c"
    executable = "transect-docking-openacc-{compiler}-{device}"
    devices = ("cpu", "cuda")
    compilers = ("gcc", "clang", "nvc")
    per_item = WORK_ITEMS
    # As many as registers of a GPU's thread hold with room for others.
    typical: ClassVar[dict[str, int]] = {"cpu": 4, "cuda": 4}
    work_groups = True

    def supports(self, cell: BenchCell) -> str | None:
        """Return why not: gcc's host is one thread, and says so in its manual."""
        if cell.device == "cpu" and cell.threads > 1:
            return f"OpenACC on the host is one thread with gcc; {cell.threads} were asked for"
        return None
