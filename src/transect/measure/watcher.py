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
from transect.measure.step_daemons import daemon_died

WATCHER_TOKEN = "TRANSECT_WATCHER_TOKEN"  # noqa: S105 its name


def _name() -> str:
    """Return what the guard calls this host: an allocation may go by the name of an interface."""
    hosts = os.environ.get("TRANSECT_HOSTS", "")
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK")
    return hosts.split(",")[int(rank)] if hosts and rank else socket.gethostname()


def watch(address: str, token: str) -> None:
    """Connect to the guard at HOST:PORT, prove to be its own, and answer until it hangs up."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=300) as connection:
        connection.settimeout(None)
        connection.sendall(f"{token} {_name()}\n".encode())
        for line in connection.makefile():
            order, _, step = line.strip().partition(" ")
            answer = {"died": daemon_died(step)} if order == "step" else snapshot()
            connection.sendall((json.dumps(answer) + "\n").encode())


def main() -> int:
    """Watch this node for the guard whose token the environment has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connect", required=True, metavar="HOST:PORT")
    watch(parser.parse_args().connect, os.environ.pop(WATCHER_TOKEN, ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
