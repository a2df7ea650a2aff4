"""Runners whose Snakemake ends: signalled at once where it can, else ended by the next run.

A block would go on for as long as it has cells, beside the run that a person starts again.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psutil

from transect.domain.owner import SESSION, is_abandoned
from transect.engine.submissions import SUBMISSIONS
from transect.launch.processes import end_processes

_RUNNER = "transect.engine.run_block"
# As the rules' command has it (`adapters.snakemake.flow`).
_RESULTS = "--results="
# To end its payload, and then itself.
_PATIENCE_S = 15


def _results(process: psutil.Process) -> Path | None:
    line = process.cmdline()
    folders = [word.removeprefix(_RESULTS) for word in line if word.startswith(_RESULTS)]
    return (Path(process.cwd()) / folders[0]).resolve() if folders and _RUNNER in line else None


def end_abandoned(results: Path) -> int:
    """End the runners that a killed run left in a results folder; return how many there were."""

    def left() -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if _results(process) == results.resolve() and is_abandoned(process.environ().get(SESSION, "")):
                    yield process

    return end_processes(left, _PATIENCE_S)


def watch_for_interruption() -> None:
    """Note an interruption by a person before Snakemake's own handler sees it.

    Snakemake answers SIGTERM by waiting for the jobs that run, and a job is a whole block.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        before: Any = signal.getsignal(number)
        # A shell starts what it puts in the background with SIGINT ignored, and then Python installs nothing: without
        # this the runners would end and Snakemake go on, and call their cells killed.
        signal.signal(number, _handler(before if callable(before) else signal.default_int_handler))
    # By `nohup` a run asks to go on.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        terminals = [number for number in (1, 2) if os.isatty(number)]
        signal.signal(signal.SIGHUP, _handler(lambda *_: _hung_up(terminals)))


def _hung_up(terminals: list[int]) -> NoReturn:
    """End as by Ctrl-C, in silence: what goes to a terminal that has gone would be an error."""
    for number in terminals:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    raise KeyboardInterrupt


def _handler(before: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
    def note(number: int, frame: FrameType | None) -> None:
        SUBMISSIONS.interrupted = True
        # A block would go on for as long as it has cells.
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if _RUNNER in process.cmdline():
                    process.terminate()
        before(number, frame)

    return note
