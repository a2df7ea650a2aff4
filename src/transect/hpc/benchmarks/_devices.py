"""Whether a program ran on a GPU, by what its log says."""

from __future__ import annotations

import re

from transect.domain.axes.bench import BenchCell
from transect.hpc.base import Run

# How CUDA names NVIDIA's devices: "NVIDIA H200", "Tesla V100-SXM2-16GB", "A100-SXM4-40GB", "RTX A6000", "GRID V100D-8Q".
_GPU = re.compile(r"\b(?:NVIDIA|Tesla|GeForce|Quadro|RTX|GRID|TITAN|G?[ABHLPTV]\d{2,3})\b", re.IGNORECASE)


def not_on_gpu(cell: BenchCell, run: Run) -> str | None:
    """Return why the log of a cell on a GPU does not show that it ran on one, or None.

    A program that offloads by OpenMP may run on the host without a word (gcc 12 heeds no OMP_TARGET_OFFLOAD=MANDATORY),
    and numbers its devices without names.
    """
    if cell.device != "cuda":
        return None
    device = str(run.parameters.get("device", ""))
    if _GPU.search(device):
        return None
    named = f"names the device {device!r}, which is no GPU's name" if device else "names no device"
    return f"the cell is on a GPU, and its log {named}: it may have run on the host"
