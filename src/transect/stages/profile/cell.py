"""The axes of a profile."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from transect.domain.cell import Axis, Cell
from transect.stages.train.cell import Batch, Framework, TrainCell

__all__ = ["ProfileCell", "trained_as"]


class ProfileCell(Cell):
    """What each layer of a workload takes by a framework, in micro-batches of `batch` samples.

    With several ranks on a node: what it takes while all of them do the same, each for itself.
    """

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["profile"] = "profile"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Framework
    # Samples of a micro-batch.
    batch: Batch


def trained_as(cell: ProfileCell) -> TrainCell:
    """Return the training whose passes are profiled: what plug-ins say of it holds for the profile."""
    return TrainCell(
        workload=cell.workload, framework=cell.framework, strategy="single", batch=cell.batch,
        threads=cell.threads, precision=cell.precision, device=cell.device, repeat=cell.repeat,
    )  # fmt: skip
