"""Memory bandwidth as numpy reaches it: copy, scale, add and triad over large arrays.

A probe of transect, not STREAM. Run with `python -m transect.hpc.probes.memory_bandwidth`. Time is
wall time of one kernel over the whole array, with all threads, on a monotonic clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from transect.hpc.probes.common import available_memory, head, last_level_cache, say, say_result, say_samples, tail

# Kernel -> array passes that are counted.
KERNELS = {"copy": 2, "scale": 2, "add": 3, "triad": 5}
COUNTING = (
    "bytes per run = array_bytes x passes; passes: copy 2, scale 2, add 3, triad 5 "
    "(numpy computes q*c and then adds b: read c, write a, read a, read b, write a); "
    "write-allocate traffic is not counted"
)
_NOTE = "a transect probe, not STREAM: numpy array operations of 8-byte floats; do not compare with STREAM results"
_LEVEL_UNKNOWN = "cache or dram: an array is not 4 times the last-level cache"
_SCALAR = 3.0
# Far enough beyond the cache that what stays in it between two kernels does not matter much: the
# rule of STREAM, https://www.cs.virginia.edu/stream/ref.html#size
_BEYOND = 4
_MEMORY_SHARE = 0.4
_MAX_SIZE = 4 << 30
_FALLBACK = 256 << 20
_FILL_SHARE = 0.6
_FILL_BLOCK = 1 << 20  # elements


def plan_array_bytes(cache: int | None, available: int) -> int:
    """Bytes of each of the three arrays: beyond the cache where 40 % of free memory allow it."""
    wanted = _FALLBACK if cache is None else max(_FALLBACK // 4, _BEYOND * cache + (1 << 20))
    most = min(_MAX_SIZE, int(available * _MEMORY_SHARE) // 3)
    return max(1 << 20, min(wanted, most)) // 4096 * 4096


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 0, or 1 when the arrays do not hold what they must."""
    import numpy as np

    parser = argparse.ArgumentParser(prog="transect.hpc.probes.memory_bandwidth", description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="threads that share each kernel")
    parser.add_argument("--seconds", type=float, default=5.0, help="budget, the filling of arrays included")
    parser.add_argument("--array-bytes", type=int, help="bytes of one array; default: beyond the cache")
    parser.add_argument("--min-runs", type=int, default=3, help="runs per kernel, whatever the budget")
    given = parser.parse_args(arguments)
    if given.threads < 1 or given.min_runs < 1 or (given.array_bytes or 8) < 8:
        parser.error("--threads and --min-runs must be at least 1, --array-bytes at least 8")
    cache, available = last_level_cache(), available_memory()
    wanted = (given.array_bytes or plan_array_bytes(cache, available)) // 8 * 8
    head("memory-bandwidth", _NOTE, np.__version__)
    began = time.monotonic()
    with ThreadPoolExecutor(given.threads) as pool:
        arrays = _Arrays(np, wanted // 8, given.threads, pool)
        arrays.fill(began + _FILL_SHARE * given.seconds)
        array_bytes = arrays.length * 8
        beyond = cache is not None and array_bytes >= _BEYOND * cache
        for key, value in (
            ("threads", given.threads),
            ("element_bytes", 8),
            ("array_bytes", array_bytes),
            ("arrays", 3),
            ("wanted_array_bytes", wanted),
            ("cache_bytes", "unknown" if cache is None else cache),
            ("available_bytes", available),
            ("beyond_cache", "yes" if beyond else "no"),
            ("level", "dram" if beyond else _LEVEL_UNKNOWN),
            ("counting", COUNTING),
        ):
            say(key, value)
        if array_bytes < wanted:
            say("warning", "the arrays are smaller than wanted: filling them took its whole share of the time")
        say("fill_s", f"{time.monotonic() - began:.3f}")
        times: dict[str, list[float]] = {kernel: [] for kernel in KERNELS}
        rounds = 0
        while rounds < given.min_runs + 1 or time.monotonic() - began < given.seconds:
            for kernel in KERNELS:
                seconds = arrays.run(kernel)
                if rounds:  # the first round is warm-up
                    times[kernel].append(seconds)
            rounds += 1
        problems = arrays.verify(rounds)
    say("warmup_runs", 1)
    for kernel, samples in times.items():
        say_samples(kernel, samples)
        say_result(kernel, samples, "B/s", KERNELS[kernel] * array_bytes)
    return tail("memory-bandwidth", problems)


class _Arrays:
    """Three arrays cut into a slice per thread; numpy frees the interpreter lock meanwhile."""

    def __init__(self, np: Any, length: int, threads: int, pool: ThreadPoolExecutor) -> None:
        self._np, self._pool = np, pool
        self.a, self.b, self.c = (np.empty(length) for _ in range(3))
        self._edges = [length * i // threads for i in range(threads)]
        self._room = max(1, length // threads)
        self._parts = [slice(low, low + self._room) for low in self._edges]

    @property
    def length(self) -> int:
        """Elements of one array that are used."""
        return sum(part.stop - part.start for part in self._parts)

    def _each(self, work: Callable[[slice], object]) -> float:
        start = time.perf_counter()
        for _ in self._pool.map(work, self._parts):
            pass
        return time.perf_counter() - start

    def fill(self, deadline: float) -> None:
        """Touch pages from the thread that uses them, since memory is placed at first touch.

        A virtual machine may take seconds per gigabyte for that: what is not filled at `deadline`
        is not used. All threads then use equally much, at least one block.
        """
        filled: list[int] = []

        def work(part: slice) -> None:
            place = part.start
            while place < part.stop and (place == part.start or time.monotonic() < deadline):
                block = slice(place, min(place + _FILL_BLOCK, part.stop))
                self.a[block], self.b[block], self.c[block] = 1.0, 2.0, 0.0
                place = block.stop
            filled.append(place - part.start)

        self._each(work)
        self._parts = [slice(low, low + min(filled)) for low in self._edges]

    def run(self, kernel: str) -> float:
        """Run one kernel over the whole arrays and return its seconds."""
        np, a, b, c = self._np, self.a, self.b, self.c

        def copy(part: slice) -> None:
            np.copyto(c[part], a[part])

        def scale(part: slice) -> None:
            np.multiply(c[part], _SCALAR, out=b[part])

        def add(part: slice) -> None:
            np.add(a[part], b[part], out=c[part])

        def triad(part: slice) -> None:
            np.multiply(c[part], _SCALAR, out=a[part])
            np.add(a[part], b[part], out=a[part])

        return self._each({"copy": copy, "scale": scale, "add": add, "triad": triad}[kernel])

    def verify(self, rounds: int) -> list[str]:
        """Compare every element, exactly, with the same arithmetic on scalars; print verdicts."""
        a, b, c = 1.0, 2.0, 0.0
        for _ in range(rounds):
            c = a
            b = c * _SCALAR
            c = a + b
            a = c * _SCALAR + b
        problems = []
        for name, array, value in (("a", self.a, a), ("b", self.b, b), ("c", self.c, c)):
            wrong = [0]

            def work(part: slice, array: Any = array, value: float = value, wrong: list[int] = wrong) -> None:
                low, high = array[part].min(initial=value), array[part].max(initial=value)
                if not (low == value == high):
                    wrong.append(1)

            self._each(work)
            verdict = "passed" if len(wrong) == 1 else "FAILED"
            print(f"verify {name} every element {value:.17g} {verdict}")
            problems += [f"array {name} is wrong"] if verdict == "FAILED" else []
        return problems


if __name__ == "__main__":
    raise SystemExit(main())
