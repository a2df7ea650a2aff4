"""The axes of a workload's data."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from transect.domain.cell import Axis, Cell


class DataCell(Cell):
    """One workload's data: split, normalised, with initial weights and batch orders."""

    stage: Literal["dataset"] = "dataset"
    workload: Annotated[str, Axis(place=20, name=True)]


@cache
def data_of(workload: str) -> DataCell:
    """Return the cell of a workload: one object, whose id is made once."""
    return DataCell(workload=workload)


class InspectCell(Cell):
    """A study's own module: its weights, shapes and operations."""

    stage: Literal["inspect"] = "inspect"
    workload: Annotated[str, Axis(place=20, name=True)]


@cache
def inspect_of(workload: str) -> InspectCell:
    """Return the cell that inspects a workload's module."""
    return InspectCell(workload=workload)
