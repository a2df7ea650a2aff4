"""Runners whose Snakemake was killed: each ends after its cell, and the next run ends the rest.

A block would go on for as long as it has cells, beside the run that a person starts again.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

_SESSION = "TRANSECT_SNAKEMAKE"
_RUNNER = "transect.engine.run_block"
# To end its payload, and then itself.
_PATIENCE_S = 15


def is_abandoned(session: str | None = None) -> bool:
    """Whether the Snakemake of a session, this process's own by default, has gone.

    One on another host counts as alive: nobody can tell from here.
    """
    told = os.environ.get(_SESSION, "") if session is None else session
    pid, _, host = told.partition(":")
    return pid.isdigit() and host == os.uname().nodename and not psutil.pid_exists(int(pid))


def _results(process: psutil.Process) -> Path | None:
    line = process.cmdline()
    if _RUNNER not in line or "--results" not in line[:-1]:
        return None
    return (Path(process.cwd()) / line[line.index("--results") + 1]).resolve()


def end_abandoned(results: Path) -> int:
    """End the runners that a killed run left in a results folder; return how many there were."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if _results(process) != results.resolve():
                continue
            if is_abandoned(process.environ().get(_SESSION, "")):
                process.terminate()
                left.append(process)
    _, stubborn = psutil.wait_procs(left, timeout=_PATIENCE_S)
    for process in stubborn:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(stubborn, timeout=_PATIENCE_S)
    return len(left)
