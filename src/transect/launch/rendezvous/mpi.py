"""Ranks of an MPI program: MPI_Init finds all that it needs from mpiexec or srun --mpi."""

from __future__ import annotations

from transect.launch.rendezvous import KERAS, RENDEZVOUS, Rendezvous

__all__ = ["Mpi"]

_EVERY = ("mpi-allreduce", "mpi-sendrecv", "mpi")


@RENDEZVOUS.register("mpi")
class Mpi(Rendezvous):
    """No variables: the launcher's PMI or PMIx tells everything."""

    strategies = {  # noqa: RUF012 the protocol's name for a constant
        "numpy": _EVERY,
        "torch": (*_EVERY, "ddp-mpi"),
        "tensorflow": _EVERY,
        **dict.fromkeys(KERAS, _EVERY),
        "mxnet": _EVERY,
        "go": _EVERY,
    }
    mpi = True
