"""Answers the guard of an allocation on one of its nodes; ends when the guard hangs up.

`python -m transect.measure.watcher --connect HOST:PORT`, with the guard's token in its environment.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys

from transect.measure.guard import snapshot

__all__ = ["WATCHER_TOKEN", "main"]

WATCHER_TOKEN = "TRANSECT_WATCHER_TOKEN"  # noqa: S105 its name


def _name() -> str:
    """Return what the guard calls this host: an allocation may go by the name of an interface."""
    hosts = os.environ.get("TRANSECT_HOSTS", "")
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK")
    return hosts.split(",")[int(rank)] if hosts and rank else socket.gethostname()


def main() -> int:
    """Connect, prove to be the guard's own, and answer each line with one snapshot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connect", required=True, metavar="HOST:PORT")
    host, _, port = parser.parse_args().connect.rpartition(":")
    token = os.environ.pop(WATCHER_TOKEN, "")
    with socket.create_connection((host, int(port)), timeout=300) as connection:
        connection.settimeout(None)
        connection.sendall(f"{token} {_name()}\n".encode())
        for _ in connection.makefile():
            connection.sendall((json.dumps(snapshot()) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
