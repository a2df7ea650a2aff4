"""The axes of a portable training step."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell

__all__ = ["BaseEpochs", "Clip", "Optimiser", "StepCell"]


def _base(epochs: int | None) -> str:
    if epochs is None:
        return "trained base"
    return "untrained base" if epochs == 0 else f"base of {epochs} epoch" + "s" * (epochs > 1)


# Shared with the retraining that goes on from it. Epochs of the base model's training: None is a
# whole one, 0 none, and what lies between a model that stopped too early.
BaseEpochs = Annotated[
    int | None,
    Axis(place=80, word=lambda n: "" if n is None else f"e{n}", label=_base, kind=True),
    Field(ge=0),
]
Optimiser = Annotated[str, Axis(place=82)]
# The largest Euclidean norm of all gradients together; None: they stay as they are.
Clip = Annotated[
    float | None,
    Axis(
        place=90,
        word=lambda norm: f"c{norm:g}" if norm else "",
        label=lambda norm: f"gradients clipped at {norm:g}" if norm else "",
        kind=True,
    ),
    Field(gt=0, allow_inf_nan=False),
]


class StepCell(Cell):
    """The training step of a workload with an optimiser, as ordinary ONNX graphs."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["step"] = "step"
    workload: Annotated[str, Axis(place=20, name=True)]
    optimiser: Optimiser
    base_epochs: BaseEpochs = None
    # Whether gradients of micro-batches can be added up.
    accumulates: Annotated[
        bool, Axis(place=91, word=lambda yes: "a" if yes else "", label=lambda yes: "", kind=True)
    ] = False
    clip: Clip = None
