"""How a payload takes turns with those that it is compared with: it waits between two iterations until it may go on.

`TRANSECT_TURNS=HOST:PORT:KEY` says whom to ask; docs/design/execution.md has the protocol. Without the variable nobody
waits. The standard library alone: it is imported in every environment.
"""

from __future__ import annotations

import os
import socket
import struct

TURNS_VARIABLE = "TRANSECT_TURNS"
_ORDER = struct.Struct("<q")


class Turns:
    """One process's place among those that take turns; without the variable `taken` is false and nothing waits.

    Raises OSError where the engine cannot be reached or has gone: a payload that went on by itself would disturb others.
    """

    def __init__(self, environ: dict[str, str] | os._Environ[str] = os.environ) -> None:
        self._connection: socket.socket | None = None
        # Iterations before the next word with the engine; none is asked for while this is negative.
        self._left = -1
        if given := environ.get(TURNS_VARIABLE):
            host, port, key = given.rsplit(":", 2)
            self._connection = socket.create_connection((host, int(port)))
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection.sendall(key.encode("ascii"))

    @property
    def taken(self) -> bool:
        """Whether there is anybody to wait for."""
        return self._connection is not None

    def begin(self) -> int:
        """Wait for the first turn, as everything is set up; return of how many iterations it is."""
        self._say(b"r")
        return self._listen()

    def step(self) -> bool:
        """Count an iteration that is over; tell whether the turn is, so that `wait` is due."""
        self._left -= self._left > 0
        return self._left == 0

    def wait(self) -> int:
        """Say that the turn is over, and wait for the next one; return its iterations, 0: there is none any more."""
        self._say(b"d")
        return self._listen()

    def end(self) -> None:
        """Say that there is no work left, and go on to the end without waiting."""
        if self._left >= 0:
            self._say(b"e")
        self._left = -1

    def _say(self, word: bytes) -> None:
        if self._connection is not None:
            self._connection.sendall(word)

    def _listen(self) -> int:
        if self._connection is None:
            return 0
        order = self._connection.recv(_ORDER.size, socket.MSG_WAITALL)
        if len(order) < _ORDER.size:
            raise ConnectionError(f"{TURNS_VARIABLE}: the engine that gives turns has gone")
        (count,) = _ORDER.unpack(order)
        # 0: the measurement is over, and nobody waits any more.
        self._left = count or -1
        return int(count)
