"""The ranks of the probe of files: one folder, phases from barrier to barrier, errors that stop all of them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transect.hpc.probes._files_store import Unusable

_FLEE_S = 5.0
_NAP = 0.0002  # s between two looks: inside MPI no signal would be heard, and a core be taken


class Team:
    """All ranks, and the folder that is theirs alone: `folder`, made by rank 0 under a name that nobody has."""

    def __init__(self, mpi: Any, path: str) -> None:
        self._world, self._mpi = mpi.COMM_WORLD, mpi
        self.rank, self.size = self._world.rank, self._world.size
        hosts = self._world.allgather(os.environ.get("SLURMD_NODENAME") or str(mpi.Get_processor_name()))
        self.nodes = len(set(hosts))
        self.on_node = hosts.count(hosts[self.rank])
        # Past the memory of the node that wrote, where there is another.
        self.shift = 1 if self.nodes == 1 else next(at for at, host in enumerate(hosts) if host != hosts[0])
        made, error = "", ""
        if self.rank == 0:
            try:
                made = tempfile.mkdtemp(prefix=f"{Path(path).name}-", dir=Path(path).parent)
            except OSError as why:
                error = f"{Path(path).parent}: {why.strerror}: expected a folder that can be written to"
        made, error = self._world.bcast((made, error))
        if error:
            raise Unusable(error)
        self.folder = Path(made)

    def see(self) -> None:
        """Raise Unusable where a rank does not see the folder: it has to be shared by all nodes."""
        blind = [rank for rank, seen in enumerate(self._world.allgather(self.folder.is_dir())) if not seen]
        if blind:
            raise Unusable(
                f"{self.folder.parent}: rank {blind[0]} does not see what rank 0 makes there: expected a shared folder"
            )

    def meet(self) -> None:
        """Wait for all ranks."""
        everybody = self._world.Ibarrier()
        while not everybody.Test():
            time.sleep(_NAP)

    def phase(self, work: Callable[[], None]) -> float:
        """Return the slowest rank's seconds of `work`, which all begin together. Raises Unusable on all for a rank's OSError."""
        self.meet()
        error, start = "", time.perf_counter()
        try:
            work()
        except OSError as why:
            error = why.strerror or str(why)
        seconds = time.perf_counter() - start
        self.meet()
        told: list[tuple[float, str]] = self._world.allgather((seconds, error))
        if failed := [(rank, why) for rank, (_, why) in enumerate(told) if why]:
            raise Unusable(f"{self.folder.parent}: rank {failed[0][0]}: {failed[0][1]}")
        return max(took for took, _ in told)

    def all(self, ask: Callable[[], bool]) -> bool:
        """Tell whether `ask` says yes on every rank."""
        said: list[bool] = []
        self.phase(lambda: said.append(ask()))
        return all(self._world.allgather(bool(said and said[0])))

    def least(self, number: int) -> int:
        """Return the least of a number over ranks."""
        return int(self._world.allreduce(number, op=self._mpi.MIN))

    def total(self, number: int) -> int:
        """Return the sum over ranks."""
        return int(self._world.allreduce(number))

    def agreed(self, value: Any) -> Any:
        """Return what rank 0 says."""
        return self._world.bcast(value)

    def leave(self) -> None:
        """Remove the folder once nobody works in it any more."""
        self.meet()
        if self.rank == 0:
            shutil.rmtree(self.folder)

    def flee(self) -> None:
        """Remove the folder without a word to the others: once it is gone, whoever still writes finds no folder."""
        until = time.monotonic() + _FLEE_S
        while self.folder.exists() and time.monotonic() < until:
            shutil.rmtree(self.folder, ignore_errors=True)
            time.sleep(_NAP)
