"""Reductions in two levels: chunked chains in groups, a tree or a chain over their leaders.

A. A. Awan, K. Hamidouche, J. M. Hashmi and D. K. Panda, "S-Caffe", PPoPP 2017, section 5. Both levels are one
tree with rank 0 at its root. A chunk goes up as soon as a rank has added its children's, and down as
soon as it is there. A rank receives one message at a time, and sends one at a time: its children take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transect.simulation.networks import Clocks, Machine, Ranks

# Clocks of chunks that are held at once: an eighth of a gigabyte. Of more chunks only so many are simulated.
MAX_CLOCKS = 2**24
# Seconds at which each chunk is there, shape (ranks, chunks).
Chunks = NDArray[np.float64]


def in_turn(ready: NDArray[np.float64], took: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return when things are done that are taken one after another along the last axis.

    `ready` (..., n): each no sooner than that. `took` (n,): how long each takes.
    """
    after = np.cumsum(took)
    return np.asarray(after + np.maximum.accumulate(ready - (after - took), axis=-1))


@dataclass(frozen=True, slots=True)
class _Round:
    """Parents with equally many children, (parents,) and (parents, children), in the order of adding."""

    parents: Ranks
    children: Ranks


@dataclass(frozen=True, kw_only=True, slots=True)
class Hierarchy:
    """Groups of `group` neighbours, each a chain; their leaders form a tree or another chain."""

    group: int = 8
    chunk_bytes: float = 2**17
    upper: Literal["tree", "chain"] = "tree"

    def reduce(self, clocks: Clocks, size: float, machine: Machine) -> Clocks:
        """Add up on rank 0."""

        def some(bytes_: float) -> Clocks:
            return self._up(clocks, bytes_, machine)[0]

        return self._carried_on(some, clocks, size)

    def broadcast(self, clocks: Clocks, size: float, machine: Machine) -> Clocks:
        """Send rank 0's bytes to all."""

        def some(bytes_: float) -> Clocks:
            first = np.full(self._chunks(bytes_)[0], clocks[0])
            return self._down(clocks, first, bytes_, machine)

        return self._carried_on(some, clocks, size)

    def allreduce(self, clocks: Clocks, size: float, machine: Machine) -> Clocks:
        """Add up on rank 0, and send each chunk of the sum back at once."""

        def some(bytes_: float) -> Clocks:
            ends, sums = self._up(clocks, bytes_, machine)
            return np.asarray(np.maximum(ends, self._down(clocks, sums, bytes_, machine)))

        return self._carried_on(some, clocks, size)

    def _carried_on(self, some: Callable[[float], Clocks], clocks: Clocks, size: float) -> Clocks:
        """Return `some(size)`; where that has too many chunks, what as many as fit lead to.

        Once all links are busy each chunk adds the same time, so two shorter buffers tell the slope.
        """
        count, chunk = self._chunks(size)
        room = max(2, MAX_CLOCKS // len(clocks))
        if count <= room:
            return some(size)
        half, whole = (some(chunks * chunk) for chunks in (room // 2, room))
        return np.asarray(whole + (whole - half) * (count - room) / (room - room // 2))

    def _chunks(self, size: float) -> tuple[int, float]:
        # Of a whole number of chunks none more for a last digit.
        count = max(1, ceil(size / self.chunk_bytes * (1 - 1e-12)))
        return count, size / count

    def _up(self, clocks: Clocks, size: float, machine: Machine) -> tuple[Clocks, Clocks]:
        count, chunk = self._chunks(size)
        added = np.full(count, machine.gamma_s_per_byte * chunk)
        ends = clocks.copy()
        held = _Held(clocks, count)
        for round_ in self._rounds(machine.ranks):
            arrived = held.of(round_.children)  # (parents, children, chunks)
            ready = np.maximum(arrived, clocks[round_.parents][:, None, None])
            took = machine.message_s(round_.children[0], np.repeat(round_.parents[:1], round_.children.shape[1]), chunk)
            # Chunk by chunk, and of each one child after another.
            flat = ready.transpose(0, 2, 1).reshape(len(round_.parents), -1)
            there = in_turn(flat, np.tile(took, count)).reshape(len(round_.parents), count, -1)
            ends[round_.children] = np.maximum(ends[round_.children], there[:, -1])
            held.put(round_.parents, in_turn(there[:, :, -1], added * round_.children.shape[1]))
        sums = held.of(np.array([0]))[0]
        ends[0] = max(ends[0], sums[-1])
        return ends, sums

    def _down(self, clocks: Clocks, chunks: Clocks, size: float, machine: Machine) -> Clocks:
        count, chunk = self._chunks(size)
        held = _Held(clocks, count)
        held.put(np.array([0]), chunks[None])
        ends = clocks.copy()
        ends[0] = max(ends[0], chunks[-1])
        for round_ in reversed(list(self._rounds(machine.ranks))):
            # Those with the longest way below them come first.
            children = round_.children[:, ::-1]
            arrived = held.of(round_.parents)
            ready = np.maximum(arrived[:, :, None], clocks[children][:, None, :])
            took = machine.message_s(np.repeat(round_.parents[:1], children.shape[1]), children[0], chunk)
            there = in_turn(ready.reshape(len(round_.parents), -1), np.tile(took, count))
            there = there.reshape(len(round_.parents), count, -1)
            ends[round_.parents] = np.maximum(ends[round_.parents], there[:, -1, -1])
            ends[children] = np.maximum(ends[children], there[:, -1])
            for place in range(children.shape[1]):
                held.put(children[:, place], there[:, :, place])
        return ends

    def _rounds(self, ranks: int) -> Iterator[_Round]:
        leaders = np.arange(0, ranks, self.group)
        # Along the chains, from their ends to the second ranks.
        for place in range(self.group - 2, 0, -1):
            parents = leaders + place
            parents = parents[parents + 1 < ranks]
            if len(parents):
                yield _Round(parents, (parents + 1)[:, None])
        chained = leaders + 1 < ranks if self.group > 1 else np.zeros(len(leaders), bool)
        for chosen, below in self._over(len(leaders)):
            for has_chain in (False, True):
                which = chained[chosen] == has_chain
                parents = leaders[chosen[which]]
                columns = [parents[:, None] + 1] if has_chain else []
                columns += [leaders[chosen[which] + step][:, None] for step in below]
                if len(parents) and columns:
                    yield _Round(parents, np.concatenate(columns, axis=1))

    def _over(self, leaders: int) -> Iterator[tuple[Ranks, list[int]]]:
        if self.upper == "chain":
            for number in range(leaders - 1, -1, -1):
                yield np.array([number]), [1] if number + 1 < leaders else []
            return
        for bit in range(leaders.bit_length() + 1):
            # Those whose lowest set bit it is; 0 comes last, with all steps.
            chosen = np.arange(1 << bit, leaders, 2 << bit)
            if 1 << bit >= leaders:
                chosen = np.array([0])
            steps = np.array([1 << place for place in range(bit)])
            counts = (chosen[:, None] + steps < leaders).sum(axis=1)
            for count in np.unique(counts):
                yield chosen[counts == count], steps[:count].tolist()
            if 1 << bit >= leaders:
                return


class _Held:
    """When chunks are on ranks; on one that nothing was put on yet, from its own beginning."""

    def __init__(self, clocks: Clocks, count: int) -> None:
        self._rows = np.repeat(clocks[:, None], count, axis=1)

    def put(self, ranks: Ranks, chunks: Chunks) -> None:
        """Note them, (ranks, chunks)."""
        self._rows[ranks] = chunks

    def of(self, ranks: Ranks) -> NDArray[np.float64]:
        """Return those of ranks of any shape, (..., chunks)."""
        return self._rows[ranks]
