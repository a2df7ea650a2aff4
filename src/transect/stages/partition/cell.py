"""The axes of a partition."""

from __future__ import annotations

from typing import Literal

from transect.domain.cell import Cell
from transect.stages.corpus.cell_text import Corpus, Partition

__all__ = ["PartitionCell"]


class PartitionCell(Cell):
    """Which tickets of a corpus train, and which serve what else: the same for every view of them."""

    stage: Literal["partition"] = "partition"
    corpus: Corpus
    partition: Partition
