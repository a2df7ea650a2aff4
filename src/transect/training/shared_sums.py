"""Sums and copies in memory that ranks of one node share: no message, each number is read where it lies.

For every chunk a rank copies its own into its slot; then each of some ranks adds one slice over all
slots, in rank order, and the leader takes the whole. There are several sets of slots, so that a rank
may be chunks ahead of another: where ranks take turns on a core, each wait costs a turn. Counters, each of one writer, say how far a rank is:
who must wait gives its core away, as there may be more ranks than cores.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

_SETS = 8
# So many chunks may be written before the first one's sum is asked for.
AHEAD = _SETS - 1
# A rank adds no less at once: the others' counters cost more than that.
_MIN_SLICE = 2**16
# A rank that waits gives its core away so often, then sleeps so long between two looks: the system
# soon takes the core from who never sleeps, and does not give it back at once.
_TURNS, _NAP_S = 300, 2e-5
# A counter has a cache line of its own, in numbers of eight bytes.
_LINE = 8


class SharedGroup:
    """Ranks of one communicator of mpi4py's whose processes can share memory; its rank 0 leads.

    Every rank must call the same methods in the same order, with chunks of at most `chunk_bytes`.
    """

    def __init__(self, comm: Any, chunk_bytes: int) -> None:
        from mpi4py import MPI

        self.rank, self.size = comm.rank, comm.size
        slot = -(-chunk_bytes // 64) * 64
        shape = (_SETS, self.size + 1, slot)
        counters = 5 * self.size * _LINE * 8
        whole = counters + int(np.prod(shape))
        self._window = MPI.Win.Allocate_shared(whole if self.rank == 0 else 0, 1, comm=comm)
        memory = np.frombuffer(self._window.Shared_query(0)[0], np.uint8)[:whole]
        lines = memory[:counters].view(np.int64).reshape(5, self.size, _LINE)
        # Of each rank, how many chunks it has: written, added its slice of, taken the sum of (the
        # leader), given (the leader) and received.
        self._written, self._added, self._taken, self._given, self._received = lines[:, :, 0]
        # The last slot of a set is for what the leader gives.
        self._slots = memory[counters:].reshape(shape)
        self._deposits = self._sums = self._gifts = 0
        self._window.Lock_all(MPI.MODE_NOCHECK)
        if self.rank == 0:
            lines[...] = 0
        self._window.Sync()
        comm.Barrier()
        self._window.Sync()

    def add(self, chunk: np.ndarray, following: list[np.ndarray]) -> None:
        """Turn the leader's chunk into the sum; `following`: those of the next calls, as far as known."""
        number, self._sums = self._sums, self._sums + 1
        self._deposit(number, chunk)
        for ahead, next_chunk in enumerate(following[:AHEAD], number + 1):
            self._deposit(ahead, next_chunk)
        slots = self._of(number, chunk)
        adders = max(1, min(self.size, chunk.nbytes // _MIN_SLICE))
        if self.rank < adders:
            self._wait(self._written, number + 1)
            length = -(-chunk.size // adders)
            mine = slice(self.rank * length, (self.rank + 1) * length)
            total = slots[0, mine]
            for addend in slots[1 : self.size, mine]:
                np.add(total, addend, out=total)
            self._tell(self._added, number + 1)
        if self.rank == 0:
            self._wait(self._added[:adders], number + 1)
            chunk[...] = slots[0]
            self._tell(self._taken, number + 1)

    def give(self, chunk: np.ndarray) -> None:
        """Copy the leader's chunk into all the others'."""
        number, self._gifts = self._gifts, self._gifts + 1
        slot = self._of(number, chunk)[self.size]
        if self.rank == 0:
            self._wait(self._received[1:], number + 1 - _SETS)
            slot[...] = chunk
            self._tell(self._given, number + 1)
        else:
            self._wait(self._given[:1], number + 1)
            chunk[...] = slot
            self._tell(self._received, number + 1)

    def free(self) -> None:
        """Give the memory back; all ranks call it."""
        self._window.Unlock_all()
        self._window.Free()

    def _deposit(self, number: int, chunk: np.ndarray) -> None:
        if number < self._deposits:
            return
        self._deposits = number + 1
        self._wait(self._taken[:1], number + 1 - _SETS)
        self._of(number, chunk)[self.rank] = chunk
        self._tell(self._written, number + 1)

    def _of(self, number: int, chunk: np.ndarray) -> np.ndarray:
        """Return a set's slots (size + 1, n) as numbers like the chunk's n."""
        return self._slots[number % _SETS, :, : chunk.nbytes].view(chunk.dtype)

    def _tell(self, counters: np.ndarray, value: int) -> None:
        # What was written before lies in memory before the counter does.
        self._window.Sync()
        counters[self.rank] = value

    def _wait(self, counters: np.ndarray, value: int) -> None:
        turns = 0
        while counters.size and counters.min() < value:
            turns += 1
            if turns < _TURNS:
                os.sched_yield()
            else:
                time.sleep(_NAP_S)
        self._window.Sync()
