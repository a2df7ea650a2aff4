"""Ranks of a study's own script: the launch layer starts them, and what they send each other is the script's."""

from __future__ import annotations

from typing import NoReturn

from transect.domain.axes.train import TrainCell
from transect.training.frameworks import FRAMEWORKS
from transect.training.script_workload import ScriptFramework
from transect.training.strategies import STRATEGIES, Place, Strategy


class _OfScript(Strategy):
    """How its ranks find each other is told; no code of ours runs on them."""

    def supports(self, cell: TrainCell) -> str | None:
        if isinstance(FRAMEWORKS.get(cell.framework), ScriptFramework):
            return None
        return f"it starts a study's own script, and {cell.framework} is none"

    def join(self) -> Place:
        self._no_code()

    def barrier(self) -> None:
        self._no_code()

    def _no_code(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} runs no code of ours on a rank")


@STRATEGIES.register("torchrun")
class Torchrun(_OfScript):
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as torchrun sets them."""

    rendezvous = "tcp"


@STRATEGIES.register("mpirun")
class Mpirun(_OfScript):
    """Ranks that MPI starts, as mpirun or srun does."""

    rendezvous = "mpi"
