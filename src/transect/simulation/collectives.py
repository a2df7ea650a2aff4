"""Collectives as clocks: each function takes when ranks begin and returns when each is done.

A message begins when both ends are there (rendezvous) and takes `Machine.message_s`; a rank sends
and receives at the same time. Algorithms are those of R. Thakur, R. Rabenseifner and W. Gropp,
"Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005, and the ring of
P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from transect.simulation.networks import Clocks, Machine, Ranks

Allreduce = Callable[[Clocks, float, Machine], Clocks]


def _rounds_of_ring(clocks: Clocks, size: float, machine: Machine, sums: bool) -> Clocks:
    """Do p - 1 rounds in each of which every rank sends size / p to the next one.

    After k rounds a rank is as late as the latest of its k neighbours on both sides was, plus k
    messages: p - 1 rounds reach every rank, so there is nothing to go through one by one. Where
    links differ the slowest one sets the pace of all.
    """
    ranks = machine.ranks
    if ranks == 1:
        return clocks
    here = np.arange(ranks)
    slowest = float(machine.message_s(here, (here + 1) % ranks, size / ranks).max())
    added = machine.gamma_s_per_byte * size / ranks if sums else 0.0
    return np.full(ranks, clocks.max() + (ranks - 1) * (slowest + added))


def reduce_scatter_ring(clocks: Clocks, size: float, machine: Machine) -> Clocks:
    """Leave the sum of each rank's p-th part of `size` bytes on one rank."""
    return _rounds_of_ring(clocks, size, machine, sums=True)


def allgather_ring(clocks: Clocks, size: float, machine: Machine) -> Clocks:
    """Give every rank all p parts, `size` bytes together."""
    return _rounds_of_ring(clocks, size, machine, sums=False)


def ring(clocks: Clocks, size: float, machine: Machine) -> Clocks:
    """All-reduce in 2 (p - 1) rounds of size / p bytes."""
    return allgather_ring(reduce_scatter_ring(clocks, size, machine), size, machine)


class _Folded:
    """The ranks that take part where an algorithm wants a power of two: others hand theirs over.

    Of the first 2 (p - 2^k) ranks every even one sends to the next, which stands for both.
    """

    def __init__(self, machine: Machine) -> None:
        ranks = machine.ranks
        self.power = 1 << (ranks.bit_length() - 1)
        self._more = ranks - self.power
        self._machine = machine
        self._even = np.arange(0, 2 * self._more, 2)
        self.members = np.concatenate([self._even + 1, np.arange(2 * self._more, ranks)])

    def enter(self, clocks: Clocks, size: float) -> Clocks:
        """Return all clocks after the others handed over."""
        return self._move(clocks, self._even, self._even + 1, size, sums=True)

    def leave(self, clocks: Clocks, size: float) -> Clocks:
        return self._move(clocks, self._even + 1, self._even, size, sums=False)

    def _move(self, clocks: Clocks, a: Ranks, b: Ranks, size: float, sums: bool) -> Clocks:
        if not self._more:
            return clocks
        return _send(clocks.copy(), a, b, size, self._machine, sums)

    def exchange(self, clocks: Clocks, distance: int, size: float, sums: bool) -> Clocks:
        """Swap with the member whose number differs in one bit."""
        added = self._machine.gamma_s_per_byte * size if sums else 0.0
        even = None if self._more else self._machine.mirrored_s(distance, size)
        if even is not None:
            pairs = clocks.reshape(-1, 2, distance)
            ends = np.empty_like(pairs)
            ends[:] = (pairs.max(axis=1) + (even + added))[:, None]
            return ends.reshape(-1)
        partners = self.members[np.arange(self.power) ^ distance]
        took = self._machine.message_s(self.members, partners, size)
        clocks = clocks.copy()
        clocks[self.members] = np.maximum(clocks[self.members], clocks[partners]) + took + added
        return clocks

    def distances(self) -> list[int]:
        """Return 1, 2, 4, … below the power of two."""
        return [1 << bit for bit in range(self.power.bit_length() - 1)]


def _send(clocks: Clocks, sources: Ranks, targets: Ranks, size: float, machine: Machine, sums: bool) -> Clocks:
    """Send from each source to its target; both are busy until it is there. Changes `clocks`."""
    end = np.maximum(clocks[sources], clocks[targets])
    end += machine.message_s(sources, targets, size)
    clocks[sources] = end
    clocks[targets] = end + machine.gamma_s_per_byte * size if sums else end
    return clocks


def recursive_doubling(clocks: Clocks, size: float, machine: Machine) -> Clocks:
    """All-reduce in log2 p exchanges of all bytes: for short messages."""
    folded = _Folded(machine)
    clocks = folded.enter(clocks, size)
    for distance in folded.distances():
        clocks = folded.exchange(clocks, distance, size, sums=True)
    return folded.leave(clocks, size)


def rabenseifner(clocks: Clocks, size: float, machine: Machine) -> Clocks:
    """All-reduce as a reduce-scatter by halving and an all-gather by doubling."""
    folded = _Folded(machine)
    clocks = folded.enter(clocks, size)
    parts = [(distance, size / (2 * distance)) for distance in folded.distances()]
    for distance, part in parts:
        clocks = folded.exchange(clocks, distance, part, sums=True)
    for distance, part in reversed(parts):
        clocks = folded.exchange(clocks, distance, part, sums=False)
    return folded.leave(clocks, size)


def _binomial(ranks: int) -> list[tuple[Ranks, Ranks]]:
    """Return the rounds of a tree from rank 0: who sends to whom, the farthest first."""
    rounds = []
    distance = 1 << max(0, (ranks - 1).bit_length() - 1)
    while distance and ranks > 1:
        parents = np.arange(0, ranks - distance, 2 * distance)
        rounds.append((parents, parents + distance))
        distance //= 2
    return rounds


def bcast_binomial(clocks: Clocks, size: float, machine: Machine) -> Clocks:
    """Send rank 0's bytes down a binomial tree."""
    clocks = clocks.copy()
    for parents, children in _binomial(machine.ranks):
        clocks = _send(clocks, parents, children, size, machine, sums=False)
    return clocks


def reduce_binomial(clocks: Clocks, size: float, machine: Machine) -> Clocks:
    """Add up on rank 0 along a binomial tree."""
    clocks = clocks.copy()
    for parents, children in reversed(_binomial(machine.ranks)):
        clocks = _send(clocks, children, parents, size, machine, sums=True)
    return clocks


@dataclass(frozen=True, slots=True)
class Measured:
    """An all-reduce as it was measured on as many ranks: `points` are (bytes, s), sizes ascending.

    Between two sizes log time is a line in log size; beyond the largest, time grows with size as
    between the last two, and below the smallest it stays.
    """

    points: tuple[tuple[float, float], ...]

    def __call__(self, clocks: Clocks, size: float, machine: Machine) -> Clocks:
        """All begin with the last."""
        return np.full(machine.ranks, clocks.max() + self.seconds(size))

    def seconds(self, size: float) -> float:
        """Return what `size` bytes take."""
        sizes, times = np.array(self.points).T
        if size > sizes[-1]:
            slope = max(0.0, (times[-1] - times[-2]) / (sizes[-1] - sizes[-2]))
            return float(times[-1] + slope * (size - sizes[-1]))
        return float(np.exp(np.interp(np.log(max(size, 1.0)), np.log(sizes), np.log(times))))


ALLREDUCES: Mapping[str, Allreduce] = MappingProxyType(
    {"ring": ring, "recursive-doubling": recursive_doubling, "rabenseifner": rabenseifner}
)
