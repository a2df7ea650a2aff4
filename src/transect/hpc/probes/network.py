"""Messages between ranks as mpi4py sends them: ping-pong of two ranks, all-reduce of all.

A probe of transect, not the OSU micro-benchmarks. Started by an MPI launcher on two ranks or more:
`mpiexec -n 2 python -m mpi4py -m transect.hpc.probes.network`. Rank 0 prints.

A ping-pong sample is half a round trip between rank 0 and the last rank on another host (on the
same host where there is but one). An all-reduce sample is the time of the slowest rank, each
beginning when it leaves a barrier; it contains what ranks left that barrier apart. Sizes take turns
in rounds of a shuffled order, so that a disturbance does not hit one size alone (Hoefler and Belli,
"Scientific benchmarking of parallel computing systems", SC'15). Ranks without a part sleep.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence
from typing import Any

from transect.hpc.probes.common import head, require_world, say, say_result, say_samples, tail

SIZES = (0, *(4**power for power in range(1, 12)))
COUNTING = (
    "pingpong-N: half a round trip of N bytes; allreduce-N: slowest rank's sum of N bytes of "
    "float32 after a barrier, all ranks; allreduce-nodes-N: the same with one rank per node"
)
_NOTE = "a transect probe, not OSU or IMB: mpi4py with numpy buffers; do not compare with their results"
_SEED = 20260101
_ROUNDS = 20
_MAX_REPEATS = 10  # of one size in one round
_ALWAYS = 1024  # bytes up to which a size is measured whatever the budget
_NAP = 0.0002  # s, for ranks that wait for others: waiting inside MPI would take a core


class _Case:
    """One kind of exchange with one size, on the ranks of `comm` (null elsewhere)."""

    def __init__(self, np: Any, mpi: Any, kind: str, size: int, comm: Any) -> None:
        self.kind, self.size, self.comm = kind, size, comm
        self.label = f"{kind}-{size}"
        self.repeats = 1
        self.cost = 0.0  # s of one repeat with its checks, known to rank 0
        self.samples: list[float] = []
        self.wrong = 0
        self._np, self._mpi = np, mpi
        self.takes_part = comm != mpi.COMM_NULL
        if not self.takes_part:
            return
        # Small whole numbers: float32 sums of them are exact for 9000 ranks.
        pattern = np.arange(size // (1 if kind == "pingpong" else 4)) % 251 + 1
        if kind == "pingpong":
            self.sent = self.expected = pattern.astype(np.uint8)
        else:
            weights = [rank % 7 + 1 for rank in range(comm.size)]
            self.sent = (pattern * weights[comm.rank]).astype(np.float32)
            self.expected = (pattern * sum(weights)).astype(np.float32)
        self.got = np.empty_like(self.sent)

    def run(self, repeats: int) -> list[float]:
        """Return the seconds of each repeat on rank 0 of `comm`; every result is checked."""
        once = self._pingpong if self.kind == "pingpong" else self._allreduce
        self.comm.Barrier()
        times = self._np.array([once() for _ in range(repeats)])
        if self.kind != "pingpong":
            self.comm.Allreduce(self._mpi.IN_PLACE, times, op=self._mpi.MAX)
        return [float(value) for value in times]

    def _pingpong(self) -> float:
        comm, sent, got = self.comm, self.sent, self.got
        if comm.rank:
            comm.Recv(got, source=0)
            comm.Send(got, dest=0)
            return 0.0
        got.fill(0)
        start = time.perf_counter()
        comm.Send(sent, dest=1)
        comm.Recv(got, source=1)
        seconds = time.perf_counter() - start
        self._check()
        return seconds / 2

    def _allreduce(self) -> float:
        self.got.fill(self._np.nan)
        self.comm.Barrier()
        start = time.perf_counter()
        self.comm.Allreduce(self.sent, self.got, op=self._mpi.SUM)
        seconds = time.perf_counter() - start
        self._check()
        return seconds

    def _check(self) -> None:
        self.wrong += not self._np.array_equal(self.got, self.expected)


class _Probe:
    """All cases over the same ranks, measured in rounds until the time is used up."""

    def __init__(self, np: Any, mpi: Any, sizes: Sequence[int], max_seconds: float) -> None:
        self._began = time.monotonic()
        self._budget = max_seconds
        self.world = world = mpi.COMM_WORLD
        self.hosts: list[str] = world.allgather(_host(mpi))
        heads = [self.hosts.index(host) for host in dict.fromkeys(self.hosts)]
        self.nodes = len(heads)
        away = [rank for rank, host in enumerate(self.hosts) if host != self.hosts[0]]
        self.partner = max(away, default=world.size - 1)
        kinds = {"pingpong": _part(mpi, {0, self.partner}), "allreduce": world}
        if 1 < self.nodes < world.size:
            kinds["allreduce-nodes"] = _part(mpi, set(heads))
        self._steps = [
            [_Case(np, mpi, kind, size, comm) for kind, comm in kinds.items() if size or kind == "pingpong"]
            for size in sorted(set(sizes))
        ]
        self.cases: list[_Case] = []
        self.left_out: list[int] = []

    def measure(self, min_rounds: int) -> None:
        """Warm up, leave out sizes that would not fit into the time, then go round."""
        self._warm_up(min_rounds)
        share = self._left() / max(1, len(self.cases) * _ROUNDS)
        for case in self.cases:
            wanted = min(_MAX_REPEATS, int(share / case.cost)) if case.cost else 1
            case.repeats = self.world.bcast(max(1, wanted))
        order, took = list(self.cases), 0.0
        for done in range(_ROUNDS):
            begin = time.monotonic()
            if self.world.bcast(done >= min_rounds and took > self._left()):
                break
            random.Random(_SEED + done).shuffle(order)
            for case in order:
                case.samples += self._block(case, case.repeats)
            took = time.monotonic() - begin

    def _warm_up(self, min_rounds: int) -> None:
        for number, step in enumerate(self._steps):
            for case in step:
                self._block(case, 1)  # connections are made by the first message
                begin = time.monotonic()
                self._block(case, 1)
                case.cost = time.monotonic() - begin
            self.cases += step
            if number + 1 == len(self._steps):
                return
            if self._steps[number + 1][0].size <= _ALWAYS:
                continue
            # Four times the bytes may take four times as long.
            coming = 4 * sum(case.cost for case in step)
            whole = (min_rounds + 2) * coming + min_rounds * sum(c.cost for c in self.cases)
            if self.world.bcast(whole > self._left()):
                self.left_out = [step[0].size for step in self._steps[number + 1 :]]
                return

    def _left(self) -> float:
        return self._budget - (time.monotonic() - self._began)

    def _block(self, case: _Case, repeats: int) -> list[float]:
        times = case.run(repeats) if case.takes_part else []
        everybody = self.world.Ibarrier()
        while not everybody.Test():
            time.sleep(_NAP)
        return times

    def verdicts(self) -> list[str]:
        """Add up wrong results over ranks; print the verdicts on rank 0, return them on all."""
        problems = []
        for case in self.cases:
            wrong = self.world.allreduce(case.wrong)
            if wrong:
                problems.append(f"{case.label} is wrong {wrong} times")
            if self.world.rank == 0 and case.size:
                what = "every byte came back" if case.kind == "pingpong" else "every sum is exact"
                print(f"verify {case.label} {what} {'FAILED' if wrong else 'passed'}")
        return problems


def _host(mpi: Any) -> str:
    # Several daemons of Slurm may stand on one host: each is a node.
    return os.environ.get("SLURMD_NODENAME") or str(mpi.Get_processor_name())


def _part(mpi: Any, ranks: set[int]) -> Any:
    world = mpi.COMM_WORLD
    return world.Split(0 if world.rank in ranks else mpi.UNDEFINED, world.rank)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; rank 0 returns 1 when a result is wrong or ranks are misplaced."""
    parser = argparse.ArgumentParser(prog="transect.hpc.probes.network", description=__doc__)
    parser.add_argument("--nodes", type=int, help="how many hosts the ranks have to stand on")
    parser.add_argument("--ranks", type=int, help="how many ranks the cell has")
    parser.add_argument("--max-seconds", type=float, default=8.0, help="budget, warm-up included")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="bytes, multiples of 4")
    parser.add_argument("--min-rounds", type=int, default=3, help="rounds, whatever the budget")
    given = parser.parse_args(arguments)
    if min(given.sizes) < 0 or any(size % 4 for size in given.sizes) or given.min_rounds < 1:
        parser.error("--sizes must be multiples of 4, --min-rounds at least 1")
    import mpi4py
    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.rank == 0:
        head("network", _NOTE, np.__version__)
        say("mpi", f"{MPI.Get_library_version().split(',')[0].strip()}, mpi4py {mpi4py.__version__}")
        say("ranks", world.size)
    if problems := require_world(world.size, given.ranks):
        return 0 if world.rank else tail("network", problems)
    if world.size < 2:
        return tail("network", ["one rank has no partner: start two or more"])
    probe = _Probe(np, MPI, given.sizes, given.max_seconds)
    wrong_place = given.nodes is not None and probe.nodes != given.nodes
    if wrong_place:
        problems.append(f"{given.nodes} nodes were asked for, the ranks are on {probe.nodes}")
    else:
        probe.measure(given.min_rounds)
    if world.rank == 0:
        _print_head(probe)
    problems += probe.verdicts()
    if world.rank:
        return 0  # rank 0 alone tells: a launcher may end all ranks at the first failure
    for case in probe.cases:
        say_samples(case.label, case.samples)
        say_result(case.label, case.samples)
    # The latency, of no bytes, and the bandwidth, of the most bytes.
    pingpongs = [case for case in probe.cases if case.kind == "pingpong"]
    for case in pingpongs:
        if case.size == 0:
            say_result("latency-0", case.samples)
        elif case is pingpongs[-1]:
            say_result(f"bandwidth-{case.size}", case.samples, "B/s", case.size)
    return tail("network", problems)


def _print_head(probe: _Probe) -> None:
    say("nodes", probe.nodes)
    say("pingpong_ranks", f"0 and {probe.partner}")
    say("between", "nodes" if probe.nodes > 1 else "ranks of one node")
    say("counting", COUNTING)
    if probe.left_out:
        least = min(probe.left_out)
        say("warning", f"sizes from {least} B on are left out: they do not fit into the time")


if __name__ == "__main__":
    raise SystemExit(main())
