"""Gradients reduced by chunks: in groups of ranks, then over the groups' leaders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.options import Option
from transect.training.collectives import Hierarchy
from transect.training.frameworks import Framework, ModelPlan, Trainer
from transect.training.strategies import STRATEGIES, Parts, Place, Strategy
from transect.training.strategies._root import RootUpdates
from transect.training.traffic import Traffic


@STRATEGIES.register("mpi-hierarchical")
class MpiHierarchical(RootUpdates):
    """Chunked chains, or shared sums, in groups, a tree or a chain above; rank 0 updates, or all ranks."""

    options: Mapping[str, Option] = MappingProxyType(
        {
            "group": Option(default=8, min=1, description="ranks of a group; the first leads"),
            "chunk_bytes": Option(default=2**17, min=8, description="bytes of a message"),
            "inner": Option(
                default="chain",
                choices=("chain", "shared"),
                description="what a group is: a chain of messages, or ranks of a node that add in memory "
                "that they share",
            ),
            "upper": Option(default="tree", choices=("tree", "chain"), description="how leaders are joined"),
            "result": Option(
                default="root",
                choices=("root", "all"),
                description="who gets the sum: rank 0, which updates and spreads the weights the same way "
                "back, or all ranks",
            ),
        }
    )

    def join(self) -> Place:
        """Initialise MPI without a part of Open MPI's that says on each window that it is of no use."""
        os.environ.setdefault("OMPI_MCA_osc", "^ucx")
        return super().join()

    def traffic(self, cell: TrainCell) -> Traffic | None:
        """Chunks up and down the tree; nothing hides. Memory that ranks share is no message."""
        given = self.settings(cell)
        if given["inner"] == "shared":
            return None
        return Traffic(
            pattern="hierarchical",
            carrier="mpi",
            progress=False,
            group=given["group"],
            chunk_bytes=given["chunk_bytes"],
            upper=given["upper"],
            root_updates=given["result"] == "root",
            copies=2 if given["result"] == "root" else 1,
        )

    def trainer(self, framework: Framework, plan: ModelPlan, cell: TrainCell) -> Trainer:
        self._set = self.settings(cell)
        made = super().trainer(framework, plan, cell)
        # Shared memory is for whole chunks: none is larger than what is sent.
        chunk_bytes = min(self._set["chunk_bytes"], max(8, self._buffer.flat.nbytes))
        self._hierarchy = Hierarchy(
            self.comm.Dup(),
            group=self._set["group"],
            chunk_bytes=chunk_bytes,
            upper=self._set["upper"],
            inner=self._set["inner"],
        )
        return made

    def step(self, trainer: Trainer, x: object, y: object, learning_rate: float) -> Parts:
        """Reduce to rank 0 and back, or to all ranks, which then update alike."""
        how = Strategy.step if self._set["result"] == "all" else RootUpdates.step
        return how(self, trainer, x, y, learning_rate)

    def spread(self, flat: np.ndarray) -> None:
        self._hierarchy.broadcast(flat)

    def collect(self, flat: np.ndarray) -> None:
        self._hierarchy.reduce(flat)

    def add(self, flat: np.ndarray) -> None:
        self._hierarchy.all_reduce(flat)

    def leave(self) -> None:
        self._hierarchy.free()
        super().leave()

    def details(self) -> dict[str, Any]:
        return dict(self._set)
