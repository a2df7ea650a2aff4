"""The tests of the message sweep: what is sent, what is timed, and what must have arrived."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.hpc.probes._messages_libraries import Library

_WINDOW, _WINDOW_BYTES = 64, 1 << 26


@dataclass(frozen=True, kw_only=True, slots=True)
class Test:
    """A test of the sweep; `pair` means that it takes two ranks and no more."""

    title: str
    dtype: str
    pair: bool = False


TESTS = {
    "allreduce": Test(title="Allreduce Latency", dtype="float32"),
    "bcast": Test(title="Broadcast Latency", dtype="uint8"),
    "reduce": Test(title="Reduce Latency", dtype="float32"),
    "allgather": Test(title="Allgather Latency", dtype="uint8"),
    "iallreduce": Test(title="Non-blocking Allreduce Latency", dtype="float32"),
    "latency": Test(title="Latency", dtype="uint8", pair=True),
    "bw": Test(title="Bandwidth", dtype="uint8", pair=True),
}


class Computing:
    """Work that needs no memory and no other rank, in known portions."""

    def __init__(self) -> None:
        self._array = np.ones(1024)
        self.run(100)
        begin = time.perf_counter()
        self.run(1000)
        self.portion = (time.perf_counter() - begin) / 1000  # s

    def run(self, portions: int) -> None:
        """Multiply a small array by one, so often."""
        for _ in range(portions):
            np.multiply(self._array, 1.0, out=self._array)


class Case:
    """One test with one size in bytes. `once` returns this rank's seconds, `right` checks them."""

    def __init__(self, library: Library, test: str, size: int) -> None:
        self.library, self.test, self.size = library, test, size
        self.window = min(_WINDOW, max(1, _WINDOW_BYTES // size)) if test == "bw" else 1
        rank, ranks = library.rank, library.size
        dtype = np.dtype(TESTS[test].dtype)
        # Small whole numbers: float32 sums of them are exact for 9000 ranks.
        pattern = np.arange(size // dtype.itemsize) % 251 + 1
        zero: np.ndarray = np.zeros(pattern.size, dtype)
        sent: np.ndarray = pattern.astype(dtype)
        expected: np.ndarray | None = sent
        got = zero
        if test in ("allreduce", "iallreduce", "reduce"):
            weights = [peer % 7 + 1 for peer in range(ranks)]
            sent = (pattern * weights[rank]).astype(dtype)
            expected = (pattern * sum(weights)).astype(dtype)
            expected = None if test == "reduce" and rank else expected
        elif test == "allgather":
            # What a rank sends is shifted by its number, so that a wrong order shows.
            every = [(pattern + peer) % 251 for peer in range(ranks)]
            sent, expected = every[rank].astype(dtype), np.concatenate(every).astype(dtype)
            got = np.zeros(expected.size, dtype)
        elif test == "bcast":
            sent = sent if rank == 0 else zero
        elif test == "bw":
            expected = np.tile(sent, self.window) if rank else None
            got = np.zeros(sent.size * self.window if rank else 1, dtype)
        elif rank:  # latency: it is rank 0 that gets its own message back
            expected = None
        self._sent, self._got, self._expected = library.put(sent), library.put(got), expected
        self._token = library.put(np.zeros(4, np.uint8))

    def once(self) -> float:
        """Run it once; return seconds: of this rank, of half a round trip, of a window's message."""
        self._prepare()
        self.library.barrier()
        start = time.perf_counter()
        self._go()
        self.library.settle()
        seconds = time.perf_counter() - start
        return seconds / {"latency": 2, "bw": self.window}.get(self.test, 1)

    def overlapped(self, computing: Computing, portions: int) -> tuple[float, float]:
        """Return the seconds of a non-blocking all-reduce behind which the CPU computes; of that."""
        self._prepare()
        self.library.barrier()
        start = time.perf_counter()
        request = self.library.iallreduce(self._sent, self._got)
        begin = time.perf_counter()
        computing.run(portions)
        end = time.perf_counter()
        self.library.wait([request])
        return time.perf_counter() - start, end - begin

    def right(self) -> bool:
        """Compare every byte or sum that arrived here with what had to."""
        if self._expected is None:
            return True
        arrived = self._sent if self.test == "bcast" else self._got
        return bool(np.array_equal(self.library.get(arrived), self._expected))

    def _prepare(self) -> None:
        if self.test in ("allreduce", "iallreduce", "reduce"):
            self.library.ready(self._sent, self._got)
        elif self.test == "bcast" and self.library.rank:
            self._sent[:] = 0
        else:
            self._got[:] = 0
        self.library.settle()

    def _go(self) -> None:
        library = self.library
        if self.test == "allreduce":
            library.allreduce(self._sent, self._got)
        elif self.test == "iallreduce":
            library.wait([library.iallreduce(self._sent, self._got)])
        elif self.test == "reduce":
            library.reduce(self._sent, self._got)
        elif self.test == "bcast":
            library.bcast(self._sent)
        elif self.test == "allgather":
            library.allgather(self._sent, self._got)
        elif self.test == "latency":
            self._pingpong()
        else:
            self._stream()

    def _pingpong(self) -> None:
        library = self.library
        if library.rank == 0:
            library.wait([library.isend(self._sent, 1)])
            library.wait([library.irecv(self._got, 1)])
        else:
            library.wait([library.irecv(self._got, 0)])
            library.wait([library.isend(self._got, 0)])

    def _stream(self) -> None:
        """Send a window of messages, each into a place of its own; the last word is an answer."""
        library, size = self.library, self.size
        if library.rank == 0:
            library.wait([library.isend(self._sent, 1) for _ in range(self.window)])
            library.wait([library.irecv(self._token, 1)])
        else:
            places: list[Any] = [self._got[i * size : (i + 1) * size] for i in range(self.window)]
            library.wait([library.irecv(place, 0) for place in places])
            library.wait([library.isend(self._token, 0)])


def portions_for(seconds: float, computing: Computing) -> int:
    """Return how many portions take about that long: at least one."""
    return max(1, math.ceil(seconds / computing.portion))
