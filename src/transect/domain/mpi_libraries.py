"""MPI libraries that one mpi4py runs with: which is an axis of training cells and message sweeps, as their option `mpi`.

mpi4py's wheel has a module for each of two ABIs, Open MPI's (`libmpi.so.40`) and the one that MPICH and Intel MPI share
(`libmpi.so.12`), and loads that of the library it is told. So one environment of a framework runs with all of
them; MPICH and Intel MPI lie in environments of their own, whose mpiexec then starts the ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transect.domain.options import Option, Value

_OPEN_MPI_ABI, _MPICH_ABI = "libmpi.so.40", "libmpi.so.12"
# Whichever the environment's mpi4py finds.
OWN = "own"


@dataclass(frozen=True, kw_only=True, slots=True)
class MpiLibrary:
    """One library: the file of its ABI, how its version begins, and which environment has it ("": the cell's own)."""

    says: str
    abi: str
    environment: str = ""


MPI_LIBRARIES = {
    "openmpi": MpiLibrary(says="Open MPI", abi=_OPEN_MPI_ABI),
    "mpich": MpiLibrary(says="MPICH", abi=_MPICH_ABI, environment="imb-mpich"),
    "intel": MpiLibrary(says="Intel(R) MPI", abi=_MPICH_ABI, environment="imb"),
}
MPI = Option(
    default=OWN,
    choices=(OWN, *MPI_LIBRARIES),
    description="the MPI library that mpi4py loads, which must then be the one that ran; own: the environment's, whichever "
    "that is",
)


def chosen_mpi(options: Iterable[tuple[str, Value]]) -> str:
    """Return the value of the option `mpi` of a cell."""
    return str(dict(options).get("mpi", OWN))


def other_environments(mpi: str) -> tuple[str, ...]:
    """Return the environment that has the library, where that is not the cell's own."""
    library = MPI_LIBRARIES.get(mpi)
    return (library.environment,) if library is not None and library.environment else ()


def inside_container(mpi: str, container: str | None) -> str | None:
    """Return why a library cannot be used in a container, or None."""
    if container is None or not other_environments(mpi):
        return None
    return f"mpi {mpi} lies in an environment of its own, which the container '{container}' does not have"


def linked(program: str, mpi: str) -> str | None:
    """Return why a program that is linked to its environment's library cannot run with `mpi`, or None."""
    if not other_environments(mpi):
        return None
    abi = MPI_LIBRARIES[mpi].abi
    return f"{program} is linked by Open MPI's ABI ({_OPEN_MPI_ABI}), and mpi {mpi} has another ({abi})"


def variables(mpi: str, place: Path) -> dict[str, str]:
    """Return what makes mpi4py of any environment load the library of the environment `place`."""
    found = {"MPI4PY_LIBMPI": str(place / "lib" / MPI_LIBRARIES[mpi].abi)}
    if mpi == "intel":
        # Ranks have the cores that the launcher gives them, whichever library they run with.
        found |= {"I_MPI_ROOT": str(place), "FI_PROVIDER_PATH": f"{place}/lib", "I_MPI_PIN": "0"}
    return found


def library_name(version: str) -> str:
    r"""Return name and version out of what MPI_Get_library_version tells.

    >>> library_name("MPICH Version:      5.0.2\nMPICH Release date: today")
    'MPICH 5.0.2'
    >>> library_name("Open MPI v5.0.11, package: Open MPI, ident: 5.0.11\x00")
    'Open MPI v5.0.11'
    >>> library_name("Intel(R) MPI Library 2021.18.1 for Linux* OS")
    'Intel(R) MPI Library 2021.18.1'
    """
    first = version.strip(" \x00\n").split("\n")[0].split(",")[0]
    return " ".join(first.partition(" for ")[0].replace("Version:", "").split())


def contradiction(mpi: str, name: str) -> str | None:
    """Return what is wrong where the library `name` (see `library_name`) ran in a cell of `mpi`, or None."""
    library = MPI_LIBRARIES.get(mpi)
    if library is None or name.startswith(library.says):
        return None
    return f"the cell has mpi {mpi}, and its ranks ran with {name or 'a library that tells no name'}"
