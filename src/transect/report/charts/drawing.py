"""Draws charts beside whoever makes them: each takes as long as thousands of records to read.

A process of its own draws (`transect.report.charts.svg`) while the next section is made, and ends with this
one. What it cannot draw is drawn here, so that whoever waits for it meets the error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from markupsafe import Markup

# What a process says when it can draw.
READY = b"transect.report.charts.svg draws\n"

# With more processes than these they wait for whoever makes the charts.
_MOST = 2


def begin(drawing: Mapping[str, Any], *, alt_text: str, name: str) -> Future[Markup]:
    """Begin to draw; the result is what `transect.report.charts.svg.render` returns, or raises.

    The drawing is taken as it is now: it may change afterwards.
    """
    ask = {"drawing": drawing, "alt_text": alt_text, "name": name}
    future: Future[Markup] = Future()
    _asked().put((json.dumps(ask).encode("ascii") + b"\n", future))
    return future


@cache
def _asked() -> SimpleQueue[tuple[bytes, Future[Markup]]]:
    """Start the processes, a thread for each that waits for it; nobody waits for them at the end."""
    asked: SimpleQueue[tuple[bytes, Future[Markup]]] = SimpleQueue()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for _ in range(min(_MOST, max(1, (cores or 1) - 1))):
        threading.Thread(target=_serve, args=(asked,), daemon=True, name="charts").start()
    return asked


# A fork has the queue, and none of the threads.
os.register_at_fork(after_in_child=_asked.cache_clear)


def _serve(asked: SimpleQueue[tuple[bytes, Future[Markup]]]) -> None:
    process = _ready(_started())
    while True:
        line, future = asked.get()
        try:
            drawn = _answer(process, line)
            future.set_result(_here(line) if drawn is None else Markup(drawn))  # noqa: S704 made by `render`
        except BaseException as error:
            future.set_exception(error)


def _started() -> subprocess.Popen[bytes] | None:
    package = str(Path(__file__).resolve().parents[3])
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([package, *([known] if known else [])])
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "transect.report.charts.svg"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
    except Exception:  # no interpreter, memory or right to start one: who waits shall not wait for ever
        return None


def _ready(process: subprocess.Popen[bytes] | None) -> subprocess.Popen[bytes] | None:
    """Pass over what an interpreter says while it starts: taken for an answer, every chart would be another one's."""
    if process is not None and process.stdout is not None:
        for line in process.stdout:
            if line == READY:
                return process
    return None


def _answer(process: subprocess.Popen[bytes] | None, line: bytes) -> str | None:
    """Return what the process draws; None where it cannot, or is gone."""
    if process is None or process.poll() is not None:
        return None
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(line)
        process.stdin.flush()
        told = process.stdout.readline()
    except OSError:
        return None
    # The line of one that ended while it wrote is no answer.
    drawn: str | None = json.loads(told) if told.endswith(b"\n") else None
    return drawn


def _here(line: bytes) -> Markup:
    # Seldom needed, and long to import.
    from transect.report.charts.svg import render

    return render(**json.loads(line))
