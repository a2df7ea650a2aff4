"""A sweep over message sizes with mpi4py or torch.distributed, printed like the OSU benchmarks.

A probe of transect, not the OSU Micro-Benchmarks: the columns and what they mean are theirs
(mvapich.cse.ohio-state.edu/benchmarks, version 7), the program is not. Every message and every sum
is checked. Each rank runs `python -m transect.hpc.probes.messages`; rank 0 prints.

Avg, Min and Max are over ranks, of each rank's mean time of the operation after a barrier. A
latency is half a round trip. A bandwidth is that of windows of 64 messages, fewer where 64 would be
more than 64 MiB. The overlap is 100 - (overall - compute) / (pure communication) x 100, with
computing that takes as long as the communication. After the table stand the raw times: of each
repeat the slowest rank's, or half a round trip, or a window's time over its messages.

Last comes one size again, by which libraries are compared: operation after operation for some milliseconds make an
iteration, whose median is a sample. Under `TRANSECT_TURNS` they are as many as the engine asks for, turn by turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transect.hpc.probes.common import available_memory, require_world
from transect.measure.turns import Turns

if TYPE_CHECKING:
    from transect.hpc.probes._messages_libraries import Library
    from transect.hpc.probes._messages_tests import Case

SIZES = tuple(4**power for power in range(1, 14))  # 4 B to 64 MiB
LIBRARIES = ("mpi4py", "gloo", "nccl")
NAMES = ("allreduce", "bcast", "reduce", "allgather", "iallreduce", "latency", "bw")
LACKING = 3  # exit code
_MIN_COUNT, _MAX_COUNT, _WARM_UPS = 3, 500, 2
_ALWAYS = 1024  # bytes up to which a size is measured whatever the budget
COMPARED = 4**10  # bytes of the compared size: a gradient of 2^18 numbers
# Of the compared size: seconds of an iteration, and how many there are where nobody asks for a number.
_ITERATION_S, _ITERATIONS = 0.004, 50
# The shortest of so many operations is none that a neighbour held up.
_LOOKS = 7
_LATENCIES = ("Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations")
_COLUMNS = {
    "latency": ("Avg Latency(us)",),
    "bw": ("Bandwidth (MB/s)",),
    "iallreduce": ("Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"),
}


@dataclass(kw_only=True, slots=True)
class _Row:
    size: int
    values: list[str]
    right: bool
    samples: list[float] = field(default_factory=list)  # s


@dataclass(frozen=True, kw_only=True, slots=True)
class _Compared:
    """The compared size: seconds of each iteration, by turn."""

    size: int
    turns: list[list[float]]
    right: bool


class _Sweep:
    """Measures one size after the other; what depends on time is decided by rank 0 for all."""

    def __init__(self, library: Library, test: str, seconds: float) -> None:
        self.library, self.test = library, test
        self._end = time.monotonic() + seconds
        self.left_out = ""

    def rows(self, sizes: Sequence[int]) -> list[_Row]:
        from transect.hpc.probes._messages_tests import Case

        done: list[_Row] = []
        cost = 0.0
        for index, size in enumerate(sizes):
            if reason := self._too_much(size, cost):
                self.left_out = f"from {size} B on: {reason}"
                break
            case = Case(self.library, self.test, size)
            begin = time.monotonic()
            for _ in range(_WARM_UPS):
                case.once()
                case.right()
            cost = (time.monotonic() - begin) / _WARM_UPS
            share = (self._end - time.monotonic()) / (len(sizes) - index)
            share /= 2 if self.test == "iallreduce" else 1
            wanted = min(_MAX_COUNT, max(_MIN_COUNT, int(share / cost)))
            done.append(self._measure(case, int(self._first(wanted)), share))
        return done

    def _first(self, value: float) -> float:
        return float(self.library.exchange([value])[0, 0])

    def _too_much(self, size: int, cost: float) -> str:
        """Say why a size is left out; `cost` is that of a repeat of a fourth of it, in seconds."""
        blocks = {"allgather": 2 * self.library.size + 3, "bw": 6}.get(self.test, 5)
        ranks_here = self.library.size  # at worst they all share one memory
        if self._first(blocks * max(size, 1 << 20) * ranks_here > available_memory()):
            return "they do not fit into the memory"
        left = self._end - time.monotonic()
        late = 4 * cost * (_MIN_COUNT + _WARM_UPS) > left
        if self._first(size > _ALWAYS and late):
            return "they do not fit into the time"
        return ""

    def _measure(self, case: Case, wanted: int, share: float) -> _Row:
        mine: list[float] = []
        right, until = True, time.monotonic() + 2 * share
        while len(mine) < wanted:
            # A disturbance may make repeats much slower than the warm-up promised.
            if len(mine) >= _MIN_COUNT and self._first(time.monotonic() > until):
                break
            for _ in range(min(wanted - len(mine), max(_MIN_COUNT, wanted // 8))):
                mine.append(case.once())
                right = case.right() and right
        repeats = len(mine)
        every = self.library.exchange(mine)  # (ranks, repeats)
        means = every.mean(axis=1)
        if self.test in ("latency", "bw"):
            samples = every[0]  # rank 0 holds the watch
            middle = float(samples.mean())
            value = middle * 1e6 if self.test == "latency" else case.size / middle / 1e6
            values = [f"{value:.2f}"]
        elif self.test == "iallreduce":
            samples = every.max(axis=0)
            values, well = self._overlap(case, float(means.mean()), repeats)
            right = right and well
        else:
            samples = every.max(axis=0)
            values = [f"{v * 1e6:.2f}" for v in (means.mean(), means.min(), means.max())]
            values.append(str(repeats))
        return _Row(size=case.size, values=values, right=self._all(right), samples=list(samples))

    def compared(self, size: int, turns: Turns) -> _Compared:
        """Measure one size in iterations of equally many operations, turn by turn where there are turns."""
        import numpy as np

        from transect.hpc.probes._messages_tests import Case

        case = Case(self.library, self.test, size)
        took = []
        for _ in range(_LOOKS):
            begin = time.monotonic()
            case.once()
            case.right()
            took.append(time.monotonic() - begin)
        operations = max(1, int(self._first(_ITERATION_S / min(took))))
        made: list[list[float]] = []
        right = True
        self.library.barrier()
        count = turns.begin() if turns.taken else _ITERATIONS
        while count:
            self.library.barrier()
            mine = []
            for _ in range(count * operations):
                mine.append(case.once())
                right = case.right() and right
            every = self.library.exchange(mine)  # (ranks, operations)
            slowest = every[0] if self.test in ("latency", "bw") else every.max(axis=0)
            made.append(list(np.median(slowest.reshape(count, operations), axis=1)))
            # A peer may need this rank's help to get its last message: none waits before all have theirs.
            self.library.barrier()
            count = turns.wait() if turns.taken else 0
        return _Compared(size=size, turns=made, right=self._all(right))

    def _all(self, right: bool) -> bool:
        return bool((self.library.exchange([float(right)]) == 1.0).all())

    def _overlap(self, case: Case, pure: float, repeats: int) -> tuple[list[str], bool]:
        """Return overall, compute, pure communication and overlap as printed; whether all is right."""
        from transect.hpc.probes._messages_tests import Computing, portions_for

        computing = Computing()
        portions, right, times = portions_for(pure, computing), True, []
        for _ in range(repeats):
            times.append(case.overlapped(computing, portions))
            right = case.right() and right
        mine = [sum(column) / repeats for column in zip(*times, strict=True)]
        overall, compute = (float(value) for value in self.library.exchange(mine).mean(axis=0))
        overlap = min(100.0, max(0.0, 100 - (overall - compute) / pure * 100))
        return [f"{v * 1e6:.2f}" for v in (overall, compute, pure)] + [f"{overlap:.2f}"], right


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; rank 0 returns 1 when a message was wrong or the ranks are not as many as they should be.

    Returns LACKING where the library cannot be opened.
    """
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.messages", description=__doc__)
    parser.add_argument("--library", choices=LIBRARIES, default="mpi4py")
    parser.add_argument("--test", choices=NAMES, default="allreduce")
    parser.add_argument("--ranks", type=int, help="how many ranks the cell has")
    parser.add_argument("--max-size", type=int, default=SIZES[-1], help="bytes")
    parser.add_argument("--compared-size", type=int, default=COMPARED, help="bytes of the size that is compared")
    parser.add_argument("--seconds", type=float, default=10.0, help="budget over all sizes")
    given = parser.parse_args(arguments)
    if given.max_size < SIZES[0]:
        parser.error(f"--max-size must be at least {SIZES[0]}")
    from transect.hpc.probes._messages_libraries import open_library
    from transect.hpc.probes._messages_tests import TESTS

    test = TESTS[given.test]
    title = f"# OSU-format message sweep (transect, {given.library}) {test.title} Test"
    try:
        # Whoever is told to take turns says that it is there before it does anything that may take long.
        turns = Turns()
        library = open_library(given.library)
    except (ImportError, OSError, ValueError) as error:
        print(f"{title}\n# End of message sweep: lacks: {error}", flush=True)
        return LACKING
    try:
        need = 2 if test.pair else max(2, library.size)
        problems = require_world(library.size, given.ranks)
        if library.size != need:
            problems.append(f"{given.test} needs 2 ranks{'' if test.pair else ' or more'}, not {library.size}")
        if problems:
            if library.rank == 0:
                print(f"{title}\n# End of message sweep: invalid: {problems[0]}", flush=True)
            return int(library.rank == 0)
        sweep = _Sweep(library, given.test, given.seconds)
        rows = sweep.rows([size for size in SIZES if size <= given.max_size])
        # What did not fit into the memory or the time is not measured for longer.
        compared = [sweep.compared(row.size, turns) for row in rows if row.size == given.compared_size]
        if library.rank == 0:
            print(f"{title}\n# Datatype: {test.dtype}.\n# Library: {library.name}")
            _print(given.test, library.size, rows, compared, sweep.left_out)
        # A launcher may end all ranks at the first failure: rank 0 alone tells.
        right = all(row.right for row in rows) and all(made.right for made in compared)
        return int(library.rank == 0 and not right)
    finally:
        library.close()


def _print(test: str, ranks: int, rows: Sequence[_Row], compared: Sequence[_Compared], left_out: str) -> None:
    """Print the table in OSU's widths, the raw times, those of the compared size, and how it ended."""
    print(f"# Ranks: {ranks}")
    names = (*_COLUMNS.get(test, _LATENCIES), "Validation")
    print("# Size    " + "".join(f"{name:>18}" for name in names))
    for row in rows:
        values = (*row.values, "Pass" if row.right else "Fail")
        print(f"{row.size:<10}" + "".join(f"{value:>18}" for value in values))
    for row in rows:
        print(f"# Samples {row.size} (us): {' '.join(f'{s * 1e6:.3f}' for s in row.samples)}")
    for made in compared:
        middle = statistics.median(s for turn in made.turns for s in turn)
        print(f"# Compared at {made.size} B: {middle * 1e6:.3f} us")
        for turn in made.turns:
            print(f"# Turn of {len(turn)} (us): {' '.join(f'{s * 1e6:.3f}' for s in turn)}")
    if left_out:
        print(f"# Sizes left out {left_out}")
    wrong = [str(row.size) for row in rows if not row.right]
    wrong += [str(made.size) for made in compared if not made.right and str(made.size) not in wrong]
    verdict = f"invalid: what arrived is wrong at {', '.join(wrong)} B" if wrong else "ok"
    print(f"# End of message sweep: {verdict}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
