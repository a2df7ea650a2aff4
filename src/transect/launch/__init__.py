"""Launchers: plain processes, mpiexec, srun. They return argument lists, never strings."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from transect.domain.registry import Plugin, Registry

__all__ = ["LAUNCHERS", "Launcher", "Request", "thread_variables"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is to be started: `command` on `nodes` x `ranks_per_node` ranks, or on `counts`."""

    command: list[str]
    nodes: int = 1
    ranks_per_node: int = 1
    # Ranks on each node where not all have `ranks_per_node`, which is then the most of them.
    counts: tuple[int, ...] = ()
    threads: int = 1
    # Cores of one node, to see whether ranks share them.
    cores: int = 1
    # The environment's bin folder, where a wheel may have put mpiexec.
    bin: Path | None = None
    # They win over every variable that the launch layer sets for all ranks.
    variables: dict[str, str] = field(default_factory=dict)
    # How ranks meet: a name of transect.launch.rendezvous.RENDEZVOUS.
    rendezvous: str = "none"
    # Network interface as `ip link` names it on every node; None leaves the choice to libraries.
    interface: str | None = None
    # Set besides those that choose the interface, e.g. UCX_NET_DEVICES.
    network_variables: dict[str, str] = field(default_factory=dict)
    mpi_type: str = "pmix"
    gpus_per_rank: int = 0
    # Show every rank all of its node's GPUs, that of local rank i at place i, not its own only.
    share_gpus: bool = False
    # Put before the command on each rank: modules, a container (transect.launch.wrapping).
    wrap: list[str] = field(default_factory=list)
    memory_mb_per_node: int | None = None
    # What runs transect/launch/rank.py on the nodes: any Python from 3.8 on.
    python: str | None = None
    # Give each rank cores of its own, unless the launcher or TRANSECT_BIND=none says otherwise.
    bind: bool = False
    # Seconds that srun may wait for its step to begin; None: as long as it likes. A controller
    # that was restarted makes srun wait for a minute: whoever calls can ask again sooner.
    patience_s: int | None = None
    # Begin each line of output with `[rank] `.
    label: bool = False
    # Standard input reaches rank 0, by srun, or at the local socket of this name; no rank has any
    # otherwise.
    stdin_at: str = ""
    # Name of the job step, to find it again.
    name: str = ""

    @property
    def ranks(self) -> int:
        """World size."""
        return sum(self.on_each)

    @property
    def on_each(self) -> tuple[int, ...]:
        """Ranks on each node."""
        return self.counts or (self.ranks_per_node,) * self.nodes

    @property
    def over_subscribed(self) -> bool:
        """Whether ranks of one node share cores."""
        return self.ranks_per_node * self.threads > self.cores

    @property
    def shim_python(self) -> str:
        """The interpreter of rank.py: `python`, else the one that runs this."""
        return self.python or sys.executable


class Launcher(Plugin, ABC):
    """Starts ranks. `processes` gives one (argv, extra environment) for each local process."""

    @abstractmethod
    def supports(self, request: Request) -> str | None:
        """Return None, or the reason why it cannot."""

    @abstractmethod
    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return what to start here: one entry per process that the runner starts itself.

        Raises BadInput for an unknown rendezvous or a request that does not fit the allocation,
        MissingDependency when the scheduler cannot be asked.
        """


LAUNCHERS: Registry[Launcher] = Registry("launcher", "transect.launch.launchers", Launcher)


# What OpenMP and the libraries of linear algebra read.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that hold every BLAS and OpenMP to `threads`."""
    return {name: str(threads) for name in THREAD_VARIABLES}
