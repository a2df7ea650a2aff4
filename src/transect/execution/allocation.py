"""What the runner of a Slurm job knows of its allocation, and its guard over all nodes."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transect.execution.scheduler import ask
from transect.measure.guard import Guard

__all__ = ["open_guard", "prepare_allocation"]

# How long a node may take to join, and to answer.
_JOIN_S = 20.0
_ANSWER_S = 5.0


def prepare_allocation() -> None:
    """Put back what Snakemake's job step strips and provenance wants: the node list."""
    job = os.environ.get("SLURM_JOB_ID")
    if job and "SLURM_JOB_NODELIST" not in os.environ:
        text = ask("squeue", "--noheader", "--jobs", job, "--format=%N")
        if text and text.strip():
            os.environ["SLURM_JOB_NODELIST"] = text.strip()


def _hosts() -> list[str]:
    nodes = os.environ.get("SLURM_JOB_NODELIST")
    text = ask("scontrol", "show", "hostnames", nodes) if nodes else None
    return text.split() if text else []


class AllocationGuard(Guard):
    """Asks a small watcher on each node. One that does not answer is named, never waited for."""

    def __init__(self, hosts: list[str], connections: dict[str, socket.socket]) -> None:
        self._hosts = hosts
        self._connections = connections

    def look(self) -> list[dict[str, Any]]:
        """Return one snapshot for each node, all taken at the same time."""
        selector = selectors.DefaultSelector()
        found: dict[str, dict[str, Any]] = {}
        buffers: dict[str, bytes] = {}
        for host, connection in list(self._connections.items()):
            try:
                connection.sendall(b"look\n")
            except OSError:
                self._connections.pop(host).close()
                continue
            buffers[host] = b""
            selector.register(connection, selectors.EVENT_READ, host)
        end = time.monotonic() + _ANSWER_S
        while buffers and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                host = key.data
                try:
                    piece = self._connections[host].recv(1 << 16)
                except OSError:
                    piece = b""
                buffers[host] += piece
                if not piece or buffers[host].endswith(b"\n"):
                    selector.unregister(key.fileobj)
                    text = buffers.pop(host)
                    if piece:
                        found[host] = json.loads(text)
                    else:
                        self._connections.pop(host).close()
        for host in buffers:
            # An answer that comes late must not be taken for the next one.
            self._connections.pop(host).close()
        selector.close()
        return [found.get(host, {"host": host, "missing": True}) for host in self._hosts]


def _join(server: socket.socket, token: str, hosts: list[str]) -> dict[str, socket.socket]:
    """Accept one watcher from each host, each proving that it is ours."""
    found: dict[str, socket.socket] = {}
    end = time.monotonic() + _JOIN_S
    while len(found) < len(hosts) and (left := end - time.monotonic()) > 0:
        server.settimeout(left)
        try:
            connection, _ = server.accept()
        except TimeoutError:
            break
        connection.settimeout(left)
        try:
            given, _, host = connection.makefile().readline(512).strip().partition(" ")
        except OSError:
            given, host = "", ""
        if secrets.compare_digest(given, token) and host in hosts:
            connection.settimeout(_ANSWER_S)
            found[host] = connection
        else:
            connection.close()
    return found


def _end(step: subprocess.Popen[str]) -> None:
    """Let a step end by itself, then make it."""
    assert step.stdin is not None
    step.stdin.close()
    for ask_to_end in (lambda: None, step.terminate, step.kill):
        ask_to_end()
        try:
            step.wait(timeout=5)
            return
        except subprocess.TimeoutExpired:
            continue


@contextmanager
def open_guard() -> Iterator[Guard]:
    """Yield a guard over every node of the allocation; over this one outside of Slurm.

    On several nodes a watcher waits on each, as one job step that overlaps the cells' own: a
    step for each look would cost more than a short cell.
    """
    hosts = _hosts()
    if len(hosts) < 2:
        yield Guard()
        return
    token = secrets.token_hex(16)
    with socket.create_server(("", 0)) as server:
        here = f"{socket.gethostname()}:{server.getsockname()[1]}"
        command = [
            "srun", f"--nodes={len(hosts)}", f"--ntasks={len(hosts)}", "--ntasks-per-node=1",
            "--cpus-per-task=1", "--overlap", "--mem=0", "--mpi=none", "--quiet",
            sys.executable, "-m", "transect.measure.watcher", "--connect", here,
        ]  # fmt: skip
        # The token goes by standard input: an argument would be there for all to read.
        watchers = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        connections: dict[str, socket.socket] = {}
        try:
            assert watchers.stdin is not None
            watchers.stdin.write(token + "\n")
            watchers.stdin.flush()
            connections = _join(server, token, hosts)
            yield AllocationGuard(hosts, connections)
        finally:
            for connection in connections.values():
                connection.close()
            _end(watchers)
