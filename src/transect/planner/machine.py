"""What a plan has to know of a machine: given in a study, or measured in a moment."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from transect.domain.errors import BadInput, TransectError
from transect.launch import thread_variables
from transect.planner.costs import Rates
from transect.planner.problem import Link

_SMALL, _LARGE = 8, 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A rank's rates, and links between ranks of one node and of two. `source` says where they are from.

    `between` is None where nodes' messages are not known.
    """

    rates: Rates
    inside: Link
    between: Link | None
    source: str

    def links(self, stages: int, ranks: int, ranks_per_node: int) -> tuple[Link, ...]:
        """Return the link behind each stage but the last: the slowest that any replica has there.

        Ranks of one replica follow one another. Raises BadInput where nodes' messages are not known.
        """
        found = []
        for stage in range(stages - 1):
            crosses = any((first + stage + 1) % ranks_per_node == 0 for first in range(0, ranks, stages))
            found.append(self._between() if crosses else self.inside)
        return tuple(found)

    def replica_link(self, ranks: int, ranks_per_node: int) -> Link:
        """Return the slowest link that replicas of a stage sum over."""
        return self._between() if ranks > ranks_per_node else self.inside

    def _between(self) -> Link:
        if self.between is None:
            raise BadInput(
                "how long messages between nodes take is not known: give --link, `latency_s` and `bytes_per_s` of the "
                "system's network, or --profile with results of the benchmark network-probe on as many nodes"
            )
        return self.between


def _flops() -> float:
    n = 256
    a = np.random.default_rng(0).standard_normal((n, n), np.float32)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - begin)
    return 2 * n**3 / min(times)


def _bytes() -> float:
    a, b = np.ones(2**22, np.float32), np.empty(2**22, np.float32)
    times = []
    for _ in range(12):
        begin = time.perf_counter()
        np.copyto(b, a)
        times.append(time.perf_counter() - begin)
    return 2 * a.nbytes / min(times)


def _receive(end: socket.socket, size: int) -> None:
    left = size
    while left:
        got = end.recv(min(left, 2**20))
        if not got:
            raise OSError("the other process has ended")
        left -= len(got)


def _answer(end: socket.socket, rounds: dict[int, int]) -> None:
    for size, count in rounds.items():
        data = bytes(size)
        for _ in range(count):
            _receive(end, size)
            end.sendall(data)


def _link() -> Link:
    """Return what a message between two processes of this machine costs, through a pair of sockets."""
    rounds = {_SMALL: 100, _LARGE: 10}
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        # The copy answers and ends, without anything that the process would do at its exit.
        code = 1
        try:
            ours.close()
            theirs.settimeout(60)
            _answer(theirs, rounds)
            code = 0
        finally:
            os._exit(code)
    theirs.close()
    ours.settimeout(60)
    found = {}
    try:
        for size, count in rounds.items():
            data, times = bytes(size), []
            for _ in range(count):
                begin = time.perf_counter()
                ours.sendall(data)
                _receive(ours, size)
                times.append((time.perf_counter() - begin) / 2)
            found[size] = median(times)
    finally:
        ours.close()
        os.waitpid(child, 0)
    beta = max(0.0, (found[_LARGE] - found[_SMALL]) / (_LARGE - _SMALL))
    return Link(found[_SMALL], beta)


def _rates(threads: int) -> Rates:
    """Measure in a process of its own: a BLAS takes its number of threads when it is loaded."""
    try:
        printed = subprocess.run(
            [sys.executable, "-m", "transect.planner.machine"],
            env=os.environ | thread_variables(threads),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
    except subprocess.SubprocessError as error:
        why = str(getattr(error, "stderr", None) or error)
        raise TransectError(f"this machine's rates cannot be measured: {why[-500:]}") from error
    return Rates(*map(float, printed.split()))


def measured_here(threads: int = 1) -> Machine:
    """Measure this machine in about a second: a matrix product by so many threads, a copy, a round trip."""
    return Machine(
        rates=_rates(threads),
        inside=_link(),
        between=None,
        source=f"measured on this machine just now, {threads} thread{'s' * (threads > 1)} to a rank",
    )


if __name__ == "__main__":
    print(_flops(), _bytes())
