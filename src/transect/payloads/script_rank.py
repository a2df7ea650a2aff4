"""One rank of a study's own script: starts it as it is, and notes what it tells and what it uses.

`python -m transect.payloads.script_rank --out FOLDER -- FILE.py ARGUMENTS`, in the environment of the script: the
standard library alone, Python 3.8 or later. On rank 0 the script's `transect.log_epoch` writes to `epochs.jsonl` in the
cell's folder; with `--epoch-line` lines that it prints do. Each rank leaves `rank-RRR.json`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from transect.measure.usage import Usage

EPOCHS = "epochs.jsonl"
# Who numbers ranks: the launch layer, or an MPI.
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_LOCAL = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
# What torchrun tells ranks.
_TORCHRUN = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT"),
)
_PIECE = 65536
# More of a line than this is no line of a log.
_MAX_LINE = 65536


def _number(names: tuple[str, ...]) -> int:
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), 0)


def copy_and_match(source: int, pattern: str, epochs: Path) -> None:
    """Copy all that comes from `source` to standard output at once; note matching lines in `epochs`, and when they came.

    A progress bar ends its lines by a carriage return.
    """
    wanted, rest = re.compile(pattern), b""
    while piece := os.read(source, _PIECE):
        now = time.time()
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        *lines, rest = re.split(rb"[\r\n]+", rest + piece)
        _note(lines, wanted, epochs, now)
        rest = rest[-_MAX_LINE:]
    _note([rest], wanted, epochs, time.time())


def _note(lines: list[bytes], wanted: re.Pattern[str], epochs: Path, now: float) -> None:
    for line in lines:
        found = wanted.search(line.decode("utf-8", "replace"))
        if found is not None:
            told = {name: value for name, value in found.groupdict().items() if value is not None}
            with epochs.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**told, "at": now}) + "\n")


def adopt() -> None:
    """Become the parent of all processes that the script will leave behind (Linux)."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def end_children() -> None:
    """End what the script has left behind: it would go on beside whatever is measured next."""
    while found := [
        int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()
    ]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _versions(script: str) -> dict[str, str]:
    """Return the versions of what the script itself imports, as far as they are installed packages."""
    from importlib import metadata

    tree = ast.parse(Path(script).read_bytes())
    nodes = list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    packages: Any = getattr(metadata, "packages_distributions", dict)()
    found = {package for name in names for package in packages.get(name.split(".")[0], ())}
    return {package: metadata.version(package) for package in sorted(found)} | {"python": sys.version.split()[0]}


def main() -> int:
    """Run the script; return its exit code, 128 + number for a signal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the cell")
    parser.add_argument("--work", type=Path, required=True, help="folder in which the script runs")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--alone", action="store_true", help="as without a launcher: it is told of no ranks")
    parser.add_argument("--epoch-line", help="regular expression of lines that it prints")
    parser.add_argument("command", nargs="+", metavar="FILE.py")
    given = parser.parse_args()
    rank = _number(_RANK)
    epochs: Path = given.out / EPOCHS
    left_out = _TORCHRUN if given.alone else ()
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    # What lies beside the script may be `data`, which counts by what it holds.
    variables |= {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    pattern = given.epoch_line if rank == 0 else None
    if rank == 0 and pattern is None:
        variables["TRANSECT_EPOCHS"] = str(epochs)
    adopt()
    watch = Usage(given.device, _number(_LOCAL))
    started = time.time()
    child = subprocess.Popen(
        [sys.executable, *given.command],
        cwd=given.work,
        env=variables,
        stdout=subprocess.PIPE if pattern else None,
        stderr=subprocess.STDOUT if pattern else None,
    )
    reader = None
    if pattern and child.stdout is not None:
        # Not here: what the script leaves behind may hold its output open.
        reader = threading.Thread(target=copy_and_match, args=(child.stdout.fileno(), pattern, epochs))
        reader.start()
    code = child.wait()
    ended, used = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, usage = used.ru_utime + used.ru_stime, watch.stop()
    end_children()
    if reader is not None:
        reader.join()
    facts = {
        "rank": rank,
        "host": socket.gethostname(),
        "pid": child.pid,
        "code": code,
        "started": started,
        "ended": ended,
        "peak_memory_bytes": used.ru_maxrss * 1024,
        # Of the script and of what it started and waited for, such as workers that read data.
        "usage": {**usage, "cpu_s": cpu, "cpu_utilisation": cpu / (ended - started)},
        "libraries": _versions(given.command[0]) if code == 0 else {},
    }
    place = given.out / f"rank-{rank:03d}.json"
    beside = place.with_name(f".{place.name}")
    beside.write_text(json.dumps(facts), encoding="utf-8")
    beside.replace(place)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
