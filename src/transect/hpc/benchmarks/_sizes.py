"""Sizes of problems that follow the machine."""

from __future__ import annotations

from transect.domain.axes.bench import BenchCell
from transect.measure.memory import node_memory
from transect.measure.provenance import available_cores


def cells_memory(cell: BenchCell) -> int:
    """Return the bytes of one node's memory that are the cell's, by how many of its cores it uses."""
    cores = max(1, available_cores())
    return node_memory() * min(cores, cell.ranks_per_node * cell.threads) // cores
