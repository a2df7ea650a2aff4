"""What a compute node sees: `python -m transect.measure.node_probe ORDER`, one JSON line.

The order names a token file, a results folder, network interfaces, a scratch folder and pythons.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["main", "probe", "sees"]


def sees(path: Path, seconds: float = 10) -> bool:
    """Wait for a file that another node wrote: network file systems show it late."""
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def _writes(folder: str) -> str:
    """Return why a folder cannot be written, or nothing.

    The file's name is its own: two nodes may have one folder and the same process ids.
    """
    try:
        with tempfile.NamedTemporaryFile(
            dir=os.path.expandvars(folder), prefix=".transect-"
        ) as file:
            file.write(b"x")
    except OSError as error:
        return str(error)
    return ""


# An environment of a compiled runner has no numpy; where there is one, it has to load.
_LOADS = "import importlib.util as i; i.find_spec('numpy') and __import__('numpy')"


def _runs(python: str) -> bool:
    """Tell whether an environment's interpreter starts here and imports numpy."""
    try:
        done = subprocess.run([python, "-c", _LOADS], capture_output=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def probe(order: dict[str, Any]) -> dict[str, Any]:
    """Return what this node sees of the order."""
    host = socket.gethostname()
    answer = Path(order["results"]) / f".doctor-answer-{host}-{os.getpid()}"
    with contextlib.suppress(OSError):
        answer.write_text(host)
    return {
        "host": host,
        "token_seen": sees(Path(order["token"])),
        "answer": str(answer),
        "interfaces": {
            name: Path("/sys/class/net", interface).exists()
            for name, interface in order["interfaces"].items()
        },
        "scratch": _writes(order["scratch"]) if order["scratch"] else "",
        "pythons": {name: _runs(python) for name, python in order["pythons"].items()},
    }


def main() -> int:
    """Print the answer to the order that is the only argument."""
    print(json.dumps(probe(json.loads(sys.argv[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
