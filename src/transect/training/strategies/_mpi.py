"""What the MPI strategies share: a communicator, numpy buffers, and any framework."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from transect.domain.axes.train import TrainCell
from transect.domain.mpi_libraries import MPI, library_name
from transect.domain.options import Option
from transect.training.frameworks import Trainer
from transect.training.strategies import Place, Strategy


class MpiStrategy(Strategy):
    """Joins MPI.COMM_WORLD. A subclass may say how gradients become their sum.

    Each has the option `mpi`, besides those that it names.
    """

    rendezvous = "mpi"
    options: Mapping[str, Option] = MappingProxyType({"mpi": MPI})

    def __init_subclass__(cls) -> None:
        """Add the option."""
        super().__init_subclass__()
        cls.options = MappingProxyType({**cls.options, "mpi": MPI})

    def __init__(self) -> None:
        self.comm: Any = None

    def supports(self, cell: TrainCell) -> str | None:
        """Any framework whose gradients come as a numpy buffer: all of them."""
        return None

    def join(self) -> Place:
        from mpi4py import MPI

        self.comm = MPI.COMM_WORLD
        local = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        place = Place(self.comm.rank, self.comm.size, local.rank)
        local.Free()
        return place

    def start(self, trainer: Trainer) -> None:
        weights = trainer.weights()
        for array in weights.values():
            self.comm.Bcast(array, root=0)
        trainer.load(weights)

    def reduce(self, trainer: Trainer) -> None:
        flat = trainer.gradient()
        if self.comm.size > 1:
            self.add(flat)
            if self.operation == "mean":
                flat /= self.comm.size
        trainer.set_gradient(flat)

    def add(self, flat: np.ndarray) -> None:
        """Turn the flat buffer into the sum over ranks, in place, the same on every rank: by one all-reduce."""
        from mpi4py import MPI

        self.comm.Allreduce(MPI.IN_PLACE, flat, op=MPI.SUM)

    def barrier(self) -> None:
        self.comm.Barrier()

    def leave(self) -> None:
        """MPI_Finalize: mpiexec calls a rank that ends without it an abnormal end."""
        from mpi4py import MPI

        MPI.Finalize()

    def libraries(self) -> dict[str, str]:
        import mpi4py
        from mpi4py import MPI

        return {"mpi4py": mpi4py.__version__, "mpi": library_name(MPI.Get_library_version())}


def to_root(comm: Any, flat: np.ndarray) -> tuple[Any, Any]:
    """Return the buffers of a reduction to rank 0, which there is in place."""
    from mpi4py import MPI

    return (MPI.IN_PLACE, flat) if comm.rank == 0 else (flat, None)
