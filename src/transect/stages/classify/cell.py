"""The axes of a classifier of tickets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.cell import Axis
from transect.stages.corpus.cell_text import Kind, RowsAxes

__all__ = ["KNOBS", "ClassifyCell"]


def _number(place: int, word: str, noun: str) -> Axis:
    """Make the axis of a number: `b64` in ids, `batch 64` in labels; None has no word."""
    return Axis(
        place=place,
        word=lambda value: "" if value is None else f"{word}{value:g}",
        label=lambda value: "" if value is None else f"{noun} {value:g}",
    )


class ClassifyCell(RowsAxes):
    """One classifier, trained on encoded tickets with one value of each knob that it has.

    A knob that the classifier does not have is None; `KNOBS` names them. `updates` stands in the place of
    `epochs` where batches are compared. Of two cells that differ in `epochs` alone, the longer one
    goes on with what the shorter one left.
    """

    stage: Literal["classify"] = "classify"
    # A name of the study's `classify.models`.
    model: Annotated[str, Axis(place=40, name=True)]
    kind: Kind
    epochs: Annotated[int | None, _number(115, "e", "epochs"), Field(ge=1)] = None
    updates: Annotated[int | None, _number(116, "u", "updates"), Field(ge=1)] = None
    batch: Annotated[int | None, _number(120, "b", "batch"), Field(ge=1)] = None
    learning_rate: Annotated[float | None, _number(122, "lr", "rate"), Field(gt=0)] = None
    optimiser: Annotated[
        str | None, Axis(place=114, word=lambda name: name or "", label=lambda name: name or "")
    ] = None
    heads: Annotated[int | None, _number(123, "h", "heads"), Field(ge=1)] = None
    layers: Annotated[int | None, _number(124, "l", "layers"), Field(ge=1)] = None

    def knobs(self) -> dict[str, Any]:
        """Return the knobs that the classifier has, with their values."""
        values = {name: getattr(self, name) for name in KNOBS}
        return {name: value for name, value in values.items() if value is not None}


KNOBS = ("epochs", "updates", "batch", "learning_rate", "optimiser", "heads", "layers")
