"""Gives turns to programs as the engine does: docs/runner-contract.md."""

from __future__ import annotations

import os
import secrets
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

PATIENCE_S = 300


class Contender:
    """A program that has said that it is ready."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        self.connection, self.process = connection, process

    def send(self, count: int) -> None:
        """Give a turn of so many iterations; 0: the measurement is over."""
        self.connection.sendall(struct.pack("<q", count))

    def turn(self, count: int) -> int:
        """Give a turn and wait for its end; return the nanoseconds that it took."""
        begin = time.monotonic_ns()
        self.send(count)
        assert self.connection.recv(1) == b"d"
        return time.monotonic_ns() - begin

    def end(self) -> int:
        """End the measurement; return the program's exit code."""
        self.send(0)
        return self.process.wait(PATIENCE_S)

    def cpu_ns(self) -> int:
        """Return the time that all threads of the program, and of what it started, ran so far."""
        pids = [self.process.pid, *(one.pid for one in psutil.Process(self.process.pid).children(recursive=True))]
        tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


class TurnServer:
    """Where programs connect to."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener, self.key = listener, secrets.token_hex(16)
        self.variable = f"127.0.0.1:{listener.getsockname()[1]}:{self.key}"

    def start(self, command: list[str], folder: Path, **variables: str) -> Contender:
        """Start a program and wait until it is ready; what it says goes to `folder/stdout` and `folder/stderr`."""
        variables = {**os.environ, **variables, "TRANSECT_TURNS": self.variable}
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(command, env=variables, cwd=folder, stdout=stdout, stderr=stderr)
        try:
            connection, _ = self.listener.accept()
            connection.settimeout(PATIENCE_S)
            assert connection.recv(32, socket.MSG_WAITALL) == self.key.encode()
            assert connection.recv(1) == b"r"
        except BaseException:
            process.kill()
            process.wait()
            raise
        return Contender(connection, process)


@contextmanager
def turn_server() -> Iterator[TurnServer]:
    """Open a server for a test."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        yield TurnServer(listener)
