"""The cells of a block are run by one process at a time, and so is a machine without a scheduler."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from transect.domain.errors import Interruption, TransectError
from transect.domain.owner import is_abandoned
from transect.domain.paths import StudyPaths
from transect.domain.terminal import say
from transect.engine.locks import Held, holding
from transect.engine.scheduler import scheduler

# A job that was cancelled ends its payload, and its nodes clean up.
_PATIENCE_S = 600.0
_POLL_S = 2.0


class Busy(TransectError):
    """Another job runs these cells: nobody's fault, and the same again may do later."""

    exit_code = 75


def _lease(path: Path, block: str) -> Held:
    def lost() -> None:
        say(f"[transect] {block}: another process has taken over: this one ends")
        os.kill(os.getpid(), signal.SIGTERM)

    return Held(path, lost, block=block, job=scheduler().job())


def _told(holder: dict[str, Any]) -> str:
    job = holder.get("job")
    where = f"pid {holder.get('pid', '?')} on {holder.get('host', '?')}"
    return f"job {job} ({where})" if job else f"{holder.get('user', '?')}'s {where}"


def runs_elsewhere(paths: StudyPaths, rule: str, name: str) -> str | None:
    """Return who runs the cells of a block now, or None."""
    holder = _lease(paths.lease(rule, name), f"{rule}.{name}").holder()
    return None if holder is None else _told(holder)


def _held(path: Path, block: str, patience_s: float) -> AbstractContextManager[None]:
    told = False

    def wait(holder: dict[str, Any], waited_s: float) -> None:
        nonlocal told
        if is_abandoned():
            raise Interruption(1)
        if waited_s > patience_s:
            job = holder.get("job")
            how = f": end it by `{scheduler().how_to_cancel(job)}`, or wait for its end" if job else ""
            raise Busy(f"{block}: its cells are run by {_told(holder)}{how}")
        if not told:
            what = holder.get("block", "what it needs")
            say(f"[transect] {block} waits: {what} is run by {_told(holder)}")
            told = True

    return holding(_lease(path, block), wait, _POLL_S)


@contextmanager
def on_machine(file: Path | None, what: str) -> Iterator[None]:
    """Hold this machine by its file, outside of a job; wait as long as another study measures or builds on it."""
    if file is None or scheduler().job():
        yield
        return
    with _held(file, what, math.inf):
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
