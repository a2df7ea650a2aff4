"""Ranks of an MPI program: MPI_Init finds all that it needs from mpiexec or srun --mpi."""

from __future__ import annotations

from transect.launch.rendezvous import KERAS, RENDEZVOUS, Rendezvous

# The last two are scripts of anybody's.
_EVERY = ("mpi-allreduce", "mpi-sendrecv", "mpi", "mpirun")
# Those of ranks that run our worker.
_OURS = (
    *_EVERY,
    "mpi-bcast-reduce",
    "mpi-hierarchical",
    "mpi-overlap",
    "mpi-overlap-bcast",
    "mpi-pipeline",
    "published-allreduce",
    "published-sendrecv",
    "async",
)
_GO = (*_EVERY, "mpi-overlap", "published-allreduce", "published-sendrecv", "async")


@RENDEZVOUS.register("mpi")
class Mpi(Rendezvous):
    """No variables: the launcher's PMI or PMIx tells everything."""

    strategies = {  # noqa: RUF012 the protocol's name for a constant
        "numpy": _OURS,
        "torch": (*_OURS, "ddp-mpi"),
        "tensorflow": _OURS,
        **dict.fromkeys(KERAS, _OURS),
        "mxnet": _OURS,
        "go": _GO,
    }
    mpi = True
