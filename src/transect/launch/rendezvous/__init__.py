"""Rendezvous: how ranks of each framework learn who they are and where to meet. One file a kind."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from transect.domain.errors import unknown_name
from transect.domain.registry import Plugin, Registry

__all__ = ["KERAS", "NUMBERS", "RENDEZVOUS", "Choice", "Rendezvous", "Service", "World", "choose"]

# Any Keras for `transect launch`, and those that the pipeline tells apart.
KERAS = ("keras", "keras-2", "keras-tensorflow", "keras-torch", "keras-jax")

# What torchrun calls a rank's numbers. The words in braces are filled in on each rank, by
# transect/launch/rank.py: rank, size, local_rank, local_size, node, nodes, host, cross_rank, cross_size.
NUMBERS = {
    "RANK": "{rank}",
    "WORLD_SIZE": "{size}",
    "LOCAL_RANK": "{local_rank}",
    "LOCAL_WORLD_SIZE": "{local_size}",
    "GROUP_RANK": "{node}",
    "GROUP_WORLD_SIZE": "{nodes}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Where the ranks are: the first `on_each[0]` on the first host, and so on."""

    # One name per node, in the order of ranks.
    hosts: tuple[str, ...]
    # What other nodes connect to: numbers where `Rendezvous.numeric` asks for them.
    addresses: tuple[str, ...]
    ranks_per_node: int = 1
    # Ranks on each host where not all have `ranks_per_node`.
    counts: tuple[int, ...] = ()
    threads: int = 1
    # The first of `ranks_per_node` consecutive ports.
    port: int = 0
    interface: str | None = None

    @property
    def nodes(self) -> int:
        """Number of hosts."""
        return len(self.hosts)

    @property
    def ranks(self) -> int:
        """World size."""
        return sum(self.on_each)

    @property
    def on_each(self) -> tuple[int, ...]:
        """Ranks on each host."""
        return self.counts or (self.ranks_per_node,) * self.nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A process besides the ranks. It is started by a rank of its node and ends with it."""

    name: str
    on: Literal["first-node", "every-node"]
    # None: the ranks' own command.
    argv: tuple[str, ...] | None = None
    variables: dict[str, str] = field(default_factory=dict)
    # Ranks start when host:port answers.
    wait_for: str = ""
    # It ends by itself after the ranks, and its failure is theirs; else it is just ended.
    ends: bool = False


class Rendezvous(Plugin, ABC):
    """One way to meet. `common` and `per_rank` are variables, `services` what else must run."""

    # Framework to the strategies that meet in this way; the first name is the preferred one.
    strategies: Mapping[str, tuple[str, ...]]
    # Whether ranks must be started by an MPI or by PMIx.
    mpi: bool = False
    # Whether `World.addresses` must be numbers, those of `World.interface` where it is given.
    numeric: bool = False

    def common(self, world: World) -> dict[str, str]:
        """Return the variables that are the same on all ranks."""
        return {}

    def per_rank(self, world: World) -> dict[str, str]:
        """Return the variables that differ, with words in braces as in NUMBERS."""
        return {}

    def services(self, world: World) -> list[Service]:
        """Return the extra processes."""
        return []


RENDEZVOUS: Registry[Rendezvous] = Registry("rendezvous", "transect.launch.rendezvous", Rendezvous)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What a framework's strategy needs: `rendezvous`; `strategy` is its full name."""

    strategy: str
    rendezvous: str


# A short name stands for another one when ranks have no GPU, or have one.
_ALIASES = {
    "ddp": ("ddp-gloo", "ddp-nccl"),
    "horovod": ("horovod-gloo", "horovod-gloo"),
    "multiworker": ("multiworker-ring", "multiworker-nccl"),
    "kvstore": ("kvstore-dist-sync", "kvstore-dist-sync"),
}


def choose(framework: str, strategy: str, gpus_per_rank: int = 0) -> Choice:
    """Find the rendezvous of a framework's strategy.

    Raises BadInput with the known names when the framework or the strategy is unknown.
    """
    table: dict[str, dict[str, str]] = {}
    for kind in RENDEZVOUS.names():
        for candidate, names in RENDEZVOUS.get(kind).strategies.items():
            table.setdefault(candidate, {}).update(dict.fromkeys(names, kind))
    if framework not in table:
        raise unknown_name("framework", framework, table)
    known = table[framework]
    name = strategy
    if strategy in _ALIASES:
        name = _ALIASES[strategy][gpus_per_rank > 0]
    if name not in known:
        short = [s for s, full in _ALIASES.items() if full[0] in known]
        raise unknown_name(f"strategy of {framework}", strategy, [*known, *short])
    return Choice(strategy=name, rendezvous=known[name])
