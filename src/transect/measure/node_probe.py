"""What a compute node sees: `python -m transect.measure.node_probe ORDER`, JSON in short lines.

The order names a token file, a results folder, network interfaces, a scratch folder and programs with their variables.
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
        with tempfile.NamedTemporaryFile(dir=os.path.expandvars(folder), prefix=".transect-") as file:
            file.write(b"x")
    except OSError as error:
        return str(error)
    return ""


_ANSWER_S = 120
# An environment of a compiled runner has no numpy; where there is one, it has to load.
LOADS = "import importlib.util as i; i.find_spec('numpy') and __import__('numpy')"


def _fault(program: dict[str, Any]) -> str:
    try:
        done = subprocess.run(
            program["argv"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            env=os.environ | program["variables"],
        )
    except OSError as error:
        return str(error)
    except subprocess.TimeoutExpired:
        return f"no end within {_ANSWER_S} s"
    if not done.returncode:
        return ""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    # Slurm hands on 1 KiB of a line, in which one sign may take six.
    return " | ".join(lines[-3:])[-120:] or f"exit code {done.returncode}"


def probe(order: dict[str, Any]) -> dict[str, Any]:
    """Return what this node sees of the order."""
    host = socket.gethostname()
    answer = Path(order["results"]) / f".doctor-answer-{host}-{os.getpid()}"
    with contextlib.suppress(OSError):
        answer.write_text(host)
    return {
        "host": host,
        "token_seen": sees(Path(order["token"])),
        "answer": answer.name,
        "interfaces": {
            name: Path("/sys/class/net", interface).exists() for name, interface in order["interfaces"].items()
        },
        "scratch": _writes(order["scratch"]) if order["scratch"] else "",
        "programs": {name: _fault(program) for name, program in order["programs"].items()},
    }


def report_lines(facts: dict[str, Any]) -> str:
    """Return what `gathered` reads: a line for each fact, for each member where a fact has members.

    Slurm hands on at most 1 KiB of a line at once, and the pieces of two nodes' lines mix.
    """
    lines = []
    for name, value in facts.items():
        members = value.items() if isinstance(value, dict) else [(None, value)]
        lines += [json.dumps([facts["answer"], name, *member]) + "\n" for member in members]
    return "".join([*lines, json.dumps([facts["answer"], None]) + "\n"])


def gathered(text: str) -> list[dict[str, Any]]:
    """Return the facts of every node that reported all of them; other lines are ignored."""
    nodes: dict[str, dict[str, Any]] = {}
    whole = []
    for line in text.splitlines():
        if not line.startswith('["'):
            continue
        try:
            node, name, *member = json.loads(line)
        except ValueError:
            continue
        facts = nodes.setdefault(str(node), {"interfaces": {}, "programs": {}})
        if name is None:
            whole.append(facts)
        elif len(member) == 2 and member[0] is not None:
            facts[name][member[0]] = member[1]
        elif len(member) == 2:
            facts[name] = member[1]
    return whole


def main() -> int:
    """Print the answer to the order that is the only argument."""
    sys.stdout.write(report_lines(probe(json.loads(sys.argv[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
