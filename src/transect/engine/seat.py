"""One contender's place in a heat: the engine's side of what `measure/turns.py` says."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import struct
import subprocess
import threading
import time
from contextlib import suppress
from typing import Any

from transect.domain.errors import Interruption
from transect.engine.turns import Turns
from transect.launch.processes import MARK, Pauses, descendants, marked_pids, resident_bytes
from transect.measure.busy import cpu_s

_ORDER = struct.Struct("<q")


class Seat(Pauses):
    """One contender's place in a heat. Its own thread runs it; that of the heat gives it turns.

    It has the turn from its start until it is ready, in its turns, and from its last one until its thread has ended.
    Only then does time count.
    """

    def __init__(self, heat: str, turns: Turns, address: tuple[str, int], again: int = 0) -> None:
        self.heat, self.plan, self.again = heat, turns, again
        self.key = secrets.token_hex(16)
        self.address = f"{address[0]}:{address[1]}:{self.key}"
        self.connections: list[socket.socket] = []
        self._called_off = False
        self._lock = threading.Lock()
        self._waited_s = 0.0
        self._since: float | None = None
        self._roots: list[int] = []
        self._session = ""
        # Processor seconds of each of its processes, as far as they were seen.
        self._used: dict[int, float] = {}
        # Of one whose threads never rest: wakes these processes should this one be killed while they are stopped.
        self._waker: subprocess.Popen[bytes] | None = None
        self._woken: set[int] = set()
        # Iterations of each turn, and whether nobody else used the machine. The first ones were trials, and do not count.
        self.counts: list[int] = []
        self.quiet: list[bool] = []
        self.trials = 0

    # What the contender's own thread asks.

    def started(self, roots: list[int], session: str) -> None:
        """Note a payload's processes."""
        self._roots, self._session = roots, session

    @property
    def waits(self) -> bool:
        """Whether somebody else has the turn."""
        return self._since is not None

    def waited_s(self) -> float:
        """Return how long it waited in all. Raises Interruption when the heat was called off."""
        if self._called_off:
            raise Interruption(1)
        with self._lock:
            return self._waited_s + (time.monotonic() - self._since if self._since is not None else 0.0)

    def taken(self) -> dict[str, Any] | None:
        """Return `heat`, `counts` and `quiet` of its turns, and how many of them were `trials`; None: all, or none taken."""
        if len(self.counts) == self.trials:
            return None
        return {"heat": self.heat, "counts": list(self.counts), "quiet": list(self.quiet), "trials": self.trials}

    # What the heat's thread asks.

    def call_off(self) -> None:
        """Let its payload be ended, as by an interruption."""
        self._called_off = True
        self._signal(signal.SIGCONT)

    def stop_while_waiting(self) -> None:
        """Stop its processes whenever it waits, from now on: their threads never rest."""
        self._renew_waker()
        self._signal(signal.SIGSTOP)

    def _renew_waker(self) -> None:
        former, self._woken = self._waker, self._processes()
        # Its pipe ends with this process. Woken, they find the engine gone.
        wake = ["sh", "-c", 'read -r done || kill -CONT "$@"', "sh", *map(str, self._woken)]
        self._waker = subprocess.Popen(wake, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        if former is not None:
            former.communicate(b"\n")

    @property
    def is_stopped_while_waiting(self) -> bool:
        """Whether its processes are stopped when somebody else has the turn."""
        return self._waker is not None

    def close(self) -> None:
        """Its payload has ended."""
        if self._waker is not None:
            self._waker.communicate(b"\n")
            self._waker = None

    def pause(self) -> None:
        """Somebody else has the turn now."""
        if self._waker is not None and not self._processes() <= self._woken:
            self._renew_waker()
        self._signal(signal.SIGSTOP)
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()

    def resume(self) -> None:
        """It has the turn now."""
        with self._lock:
            if self._since is not None:
                self._waited_s += time.monotonic() - self._since
                self._since = None
        self._signal(signal.SIGCONT)

    def send(self, count: int) -> None:
        """Ask for so many iterations; 0: the measurement is over."""
        for connection in list(self.connections):
            try:
                connection.sendall(_ORDER.pack(count))
            except OSError:
                self.drop(connection)

    def drop(self, connection: socket.socket) -> None:
        """A process has said its last word, or died."""
        self.connections.remove(connection)
        connection.close()

    def find_processes(self) -> None:
        """Find its processes, those too that a daemon started: by their mark, which takes a while."""
        self._used = dict.fromkeys([*descendants(self._roots), *marked_pids(MARK, self._session)], 0.0)

    def cpu_s(self) -> float:
        """Return the processor time of all its processes until now, those that it started meanwhile included."""
        for pid in self._processes():
            self._used[pid] = max(self._used.get(pid, 0.0), cpu_s(pid))
        return sum(self._used.values())

    def _processes(self) -> set[int]:
        return {*self._used, *descendants(list(self._used))}

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._processes() if self._waker is not None else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def resident(self) -> int:
        """Return the bytes that its processes hold."""
        return resident_bytes(self._used)
