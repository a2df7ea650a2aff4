"""Launchers: plain processes, mpiexec, srun. They return argument lists, never strings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from transect.domain.registry import Registry

__all__ = ["LAUNCHERS", "Launcher", "Request", "thread_variables"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is to be started: `command` on `nodes` x `ranks_per_node` ranks."""

    command: list[str]
    nodes: int = 1
    ranks_per_node: int = 1
    threads: int = 1
    cores: int = 1
    # The environment's bin folder, where a wheel may have put mpiexec.
    bin: Path | None = None
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """World size."""
        return self.nodes * self.ranks_per_node


class Launcher(Protocol):
    """Starts ranks. `processes` gives one (argv, extra environment) for each local process."""

    def supports(self, request: Request) -> str | None:
        """Return None, or the reason why it cannot."""
        ...

    def processes(self, request: Request) -> list[tuple[list[str], dict[str, str]]]:
        """Return what to start here: one entry per process that the runner starts itself."""
        ...


LAUNCHERS: Registry[Launcher] = Registry("launcher", "transect.launch.launchers")


def thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that hold every BLAS and OpenMP to `threads`."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {name: str(threads) for name in names}
