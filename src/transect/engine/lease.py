"""One process at a time runs the cells of a block, measures on a machine without a scheduler, builds an environment."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from transect.domain.errors import Interruption, TransectError
from transect.domain.owner import is_abandoned
from transect.domain.paths import StudyPaths
from transect.domain.terminal import say
from transect.engine.locks import Held
from transect.engine.scheduler import scheduler

# A job that was cancelled ends its payload, and its nodes clean up.
_PATIENCE_S = 600.0
_POLL_S = 2.0


class Busy(TransectError):
    """Another job runs these cells: nobody's fault, and the same again may do later."""

    exit_code = 75


def _lease(path: Path, block: str, **more: object) -> Held:
    def lost() -> None:
        say(f"[transect] {block}: another process has taken over: this one ends")
        os.kill(os.getpid(), signal.SIGTERM)

    return Held(path, lost, block=block, job=scheduler().job(), **more)


def _told(holder: dict[str, Any]) -> str:
    job, log = holder.get("job"), holder.get("log")
    where = f"pid {holder.get('pid', '?')} on {holder.get('host', '?')}"
    told = f"job {job} ({where})" if job else f"{holder.get('user', '?')}'s {where}"
    return f"{told}; its log is {log}" if log else told


def runs_elsewhere(paths: StudyPaths, rule: str, name: str) -> str | None:
    """Return who runs the cells of a block now, or None."""
    holder = _lease(paths.lease(rule, name), f"{rule}.{name}").holder()
    return None if holder is None else _told(holder)


@contextmanager
def _held(path: Path, block: str, patience_s: float = math.inf, **more: object) -> Iterator[None]:
    lock, begin, told = _lease(path, block, **more), time.monotonic(), False
    while (holder := lock.take()) is not None:
        if is_abandoned():
            raise Interruption(1)
        if time.monotonic() - begin > patience_s:
            job = holder.get("job")
            how = f": end it by `{scheduler().how_to_cancel(job)}`, or wait for its end" if job else ""
            raise Busy(f"{block}: its cells are run by {_told(holder)}{how}")
        if not told:
            say(f"[transect] {block} waits: {holder.get('block', 'what it needs')} is run by {_told(holder)}")
            told = True
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        lock.give_back()


@contextmanager
def one_builder(folder: Path, log: Path | None = None) -> Iterator[None]:
    """Hold what is built in `folder`: two studies may ask at once, and the second one waits."""
    with _held(folder.parent / f"{folder.name}.builder", str(folder), log=log and str(log)):
        yield


@contextmanager
def on_machine(file: Path | None, what: str) -> Iterator[None]:
    """Hold this machine by its file, outside of a job; wait as long as another study measures or builds on it."""
    if file is None or scheduler().job():
        yield
        return
    with _held(file, what):
        yield


@contextmanager
def leased(paths: StudyPaths, blocks: Collection[tuple[str, str]]) -> Iterator[None]:
    """Hold the cells of blocks, each a rule and a name; outside of a job this machine before them.

    Waits for the machine as long as another study measures on it, and ten minutes for a job that
    runs the same cells, such as one that was just cancelled. Raises Busy when that goes on, and
    Interruption when the Snakemake that asked for this has gone.
    """
    with ExitStack() as stack:
        stack.enter_context(on_machine(paths.machine, f"study '{paths.study}'"))
        for rule, name in blocks:
            stack.enter_context(_held(paths.lease(rule, name), f"{rule}.{name}", _PATIENCE_S))
        yield
