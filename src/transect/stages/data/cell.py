"""The axes of a data cell: the workload alone."""

from __future__ import annotations

from typing import Literal

from transect.domain.cell import Cell

__all__ = ["DataCell"]


class DataCell(Cell):
    """One workload's data: split, normalised, with initial weights and batch orders."""

    stage: Literal["data"] = "data"
