"""Turns with other programs, each of which waits while another runs: docs/runner-contract.md."""

from __future__ import annotations

import os
import socket
import struct

from engines import BadInput


class Turns:
    """The connection to who gives the turns. Raises OSError when that one is not there, or no more."""

    def __init__(self, given: str) -> None:
        host, port, key = [*given.split(":"), "", ""][:3]
        if len(key) != 32 or not port.isdigit():
            raise BadInput("TRANSECT_TURNS: expected HOST:PORT:KEY")
        self._peer = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, int(port)))
            self._socket.sendall(key.encode("ascii"))
        except OSError as error:
            raise OSError(f"turns: {self._peer}: {error}") from error

    @classmethod
    def join(cls) -> Turns | None:
        """Connect, or return None where no turns are to be taken."""
        given = os.environ.get("TRANSECT_TURNS")
        return None if given is None else cls(given)

    def next(self, said: bytes) -> int:
        """Say `r`, ready, or `d`, done, and wait; return the iterations of the next turn, 0: no more."""
        try:
            self._socket.sendall(said)
            count = self._socket.recv(8, socket.MSG_WAITALL)
        except OSError:
            count = b""
        if len(count) != 8:
            raise OSError(f"turns: {self._peer} ended the connection")
        return int(struct.unpack("<q", count)[0])
