"""The axes of a prediction: those of the training that it is for."""

from __future__ import annotations

from typing import Literal

from transect.stages.train.cell import TrainCell

__all__ = ["ForecastCell", "forecast_of", "trained_as"]


class ForecastCell(TrainCell):
    """What a training will take. Its repeats share one prediction."""

    stage: Literal["forecast"] = "forecast"  # type: ignore[assignment]


def forecast_of(cell: TrainCell) -> ForecastCell:
    """Return the prediction of a training."""
    return ForecastCell(**_axes(cell) | {"repeat": 0})


def trained_as(cell: ForecastCell) -> TrainCell:
    """Return the training that a prediction is for, repeat 0."""
    return TrainCell(**_axes(cell))


def _axes(cell: TrainCell) -> dict[str, object]:
    return {name: getattr(cell, name) for name in TrainCell.model_fields if name != "stage"}
