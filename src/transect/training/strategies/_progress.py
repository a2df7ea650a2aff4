"""Messages under way while a rank computes, and who makes the MPI library go on with them.

A library that is not called does nothing about messages (Open MPI says so: "OMPI progress: no"). So
one that is to be under way while a rank computes needs somebody who calls: nobody (`none`: it waits
for `wait`), the rank itself between two layers (`test`), or a thread of its own (`thread`), which
looks each `PERIOD_S` and for that must get a core and Python's lock. What that is worth is measured,
never assumed. All calls of the library are made one at a time, and those of one queue in its order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from transect.domain.options import Option

PROGRESS = Option(
    default="none",
    choices=("none", "test", "thread"),
    description="who makes MPI go on with messages while a rank computes: nobody, the rank by a Test "
    "between layers, or a thread by a Test each millisecond",
)

WAIT = Option(
    default="sleep",
    choices=("sleep", "spin"),
    description="what a rank does that waits for a message: it sleeps a tenth of the time that it has "
    "waited, or keeps its core busy, as MPI does",
)
# Sleeps end late by some 0.05 ms: shorter waits are not worth one, longer ones than this none more.
_AWAKE_S, _MAX_SLEEP_S = 5e-5, 5e-4

# Of 1 Gbit/s 125 kB pass in it, which sockets hold; a call costs some microseconds.
PERIOD_S = 1e-3
# So much of what is queued is under way at once, though two at least: small messages cost a look each.
WINDOW_BYTES = 2**20


class Flight:
    """One message or collective operation: from when to when it was under way, if that was seen.

    `status` is filled when it is over: how long a received message is.
    """

    __slots__ = ("begin", "end", "request", "status")

    def __init__(self, request: Any, begin: float, status: Any = None) -> None:
        self.request, self.begin, self.status = request, begin, status
        # NaN where nobody looked before `wait`: it was over at an unknown time before.
        self.end: float | None = None


class Progress:
    """The requests of one rank. With `thread` it must be closed before MPI is finalised.

    `sleeps`: `wait` leaves the core to others, as `WAIT` says.
    """

    def __init__(self, kind: str, *, sleeps: bool = False) -> None:
        self.kind, self._sleeps = kind, sleeps
        self._open: list[Flight] = []
        self._step: list[Flight] = []
        # What waits for its turn, with its size and how to begin it; and what has begun of that.
        self._queued: deque[tuple[Flight, int, Callable[[], Any]]] = deque()
        self._going: list[tuple[Flight, int]] = []
        self._waited = 0.0
        self._fault: BaseException | None = None
        self._closed = False
        self._guard = threading.Condition()
        self._thread: threading.Thread | None = None
        if kind == "thread":
            _check_threads()
            self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()

    def add(self, post: Any, *arguments: Any, **more: Any) -> Flight:
        """Call a non-blocking function of a communicator, such as `comm.Isend`; return its flight.

        Its buffers must stay as they are until `wait` has returned.
        """
        flight = self._begin(None, post, *arguments, **more)
        self._step.append(flight)
        return flight

    def _begin(self, status: Any, post: Any, *arguments: Any, **more: Any) -> Flight:
        begin = time.perf_counter()
        with self._guard:
            flight = Flight(post(*arguments, **more), begin, status)
            self._open.append(flight)
            if self._thread is not None:
                self._guard.notify()
        self._waited += time.perf_counter() - begin
        return flight

    def queue(self, size: int, post: Any, *arguments: Any, **more: Any) -> Flight:
        """As `add`, but it begins when those queued before are nearly done; `size`: its bytes.

        A library that has all messages at once sends them side by side, and then even the first is
        there only with the last.
        """
        begin = time.perf_counter()
        flight = Flight(None, begin)
        with self._guard:
            self._queued.append((flight, size, lambda: post(*arguments, **more)))
            self._begin_queued()
        self._waited += time.perf_counter() - begin
        return flight

    def call(self, blocking: Any, *arguments: Any, **more: Any) -> None:
        """Call a blocking function of a communicator: what it takes counts as waited and under way."""
        with self._guard:
            flight = Flight(None, time.perf_counter())
            blocking(*arguments, **more)
            flight.end = time.perf_counter()
        self._step.append(flight)
        self._waited += flight.end - flight.begin

    def expect(self, receive: Any, *arguments: Any, **more: Any) -> Flight:
        """As `add`, for a receive posted ahead, of which nobody here knows when it gets under way."""
        from mpi4py import MPI

        return self._begin(MPI.Status(), receive, *arguments, **more)

    def poll(self) -> None:
        """Give the library a chance, where the rank itself is to do that: call it between layers."""
        if self.kind == "test" and self._open:
            begin = time.perf_counter()
            with self._guard:
                self._look()
            self._waited += time.perf_counter() - begin

    def wait(self, flight: Flight) -> float:
        """Return when it is over, with the seconds that it took here. Raises what the library did."""
        begin = time.perf_counter()
        with self._guard:
            if self._fault is not None:
                raise self._fault
            while flight.request is None:
                # Its turn has not come: the oldest of those before it must be over.
                self._finish(self._going[0][0])
            if flight.end is None:
                self._finish(flight)
        seconds = time.perf_counter() - begin
        self._waited += seconds
        return seconds

    def finish_step(self) -> tuple[float, float]:
        """Wait for what is left; return the seconds waited and those under way since the last call.

        Waited is all that the rank spent in this class: to begin messages, to test and to wait. Under
        way is what was seen: from the call that began a message to the Test that found it over, what
        overlaps counted once. It is NaN where nobody looks.
        """
        while self._open or self._queued:
            self.wait(self._open[0])
        waited, self._waited = self._waited, 0.0
        under_way = union([(flight.begin, flight.end or 0.0) for flight in self._step])
        self._step.clear()
        return waited, under_way

    def close(self) -> None:
        with self._guard:
            self._closed = True
            self._guard.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _finish(self, flight: Flight) -> None:
        """Wait for it. What is queued goes on meanwhile: a peer may have to have it first."""
        begin = time.perf_counter()
        while self._queued and flight.end is None:
            self._look()
            self._rest(begin)
        if flight.end is None:
            while self._sleeps and not flight.request.Test(flight.status):
                self._rest(begin)
            if not self._sleeps:
                flight.request.Wait(flight.status)
            self._end(flight)

    def _rest(self, begin: float) -> None:
        waited = time.perf_counter() - begin
        if self._sleeps and waited > _AWAKE_S:
            time.sleep(min(waited / 10, _MAX_SLEEP_S))

    def _end(self, flight: Flight) -> None:
        flight.end = time.perf_counter() if self.kind != "none" else float("nan")
        self._open.remove(flight)
        self._begin_queued()

    def _begin_queued(self) -> None:
        # Two at least, or the network would wait for the next one to begin.
        self._going = [entry for entry in self._going if entry[0].end is None]
        while self._queued and (len(self._going) < 2 or sum(size for _, size in self._going) < WINDOW_BYTES):
            flight, size, post = self._queued.popleft()
            flight.begin = time.perf_counter()
            flight.request = post()
            self._going.append((flight, size))
            self._open.append(flight)
            self._step.append(flight)
            if self._thread is not None:
                self._guard.notify()

    def _look(self) -> None:
        for flight in list(self._open):
            if flight.request.Test(flight.status):
                self._end(flight)

    def _run(self) -> None:
        with self._guard:
            while not self._closed:
                try:
                    self._look()
                except Exception as error:  # of the library: `wait` raises it
                    self._fault = error
                    return
                self._guard.wait(PERIOD_S if self._open else None)


def union(intervals: list[tuple[float, float]]) -> float:
    """Return the seconds covered by intervals of begin and end; NaN if one of them is.

    >>> union([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)])
    4.0
    """
    total, last = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        if end != end:
            return end
        total += max(0.0, end - max(begin, last))
        last = max(last, end)
    return total


def _check_threads() -> None:
    from mpi4py import MPI

    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise RuntimeError(
            "progress by a thread needs MPI_THREAD_SERIALIZED: this library was initialised with "
            f"thread level {MPI.Query_thread()}"
        )
