"""Answers the guard of an allocation on one of its nodes; ends when the guard hangs up.

`python -m transect.measure.watcher --connect HOST:PORT`, with the guard's token on its input.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys

from transect.measure.guard import snapshot

__all__ = ["main"]


def main() -> int:
    """Connect, prove to be the guard's own, and answer each line with one snapshot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connect", required=True, metavar="HOST:PORT")
    host, _, port = parser.parse_args().connect.rpartition(":")
    token = sys.stdin.readline().strip()
    with socket.create_connection((host, int(port)), timeout=300) as connection:
        connection.settimeout(None)
        connection.sendall(f"{token} {socket.gethostname()}\n".encode())
        for _ in connection.makefile():
            connection.sendall((json.dumps(snapshot()) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
