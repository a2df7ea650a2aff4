"""The jobs of one run of Snakemake, and those that a run which died has left in the queue."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from transect.domain.terminal import say
from transect.execution.locks import process_start, still_lives
from transect.execution.scheduler import accounting, ask, known

__all__ = ["accounting", "begin", "cancel_orphans", "end", "jobs_of_run", "known"]

# Beside Snakemake's own state: one file for each run that has jobs.
_RUNS = Path(".snakemake") / "runs"
_ENDING_S = 600


def jobs_of_run(name: str) -> list[str] | None:
    """Return the ids of the jobs of a run that are queued or running; None: Slurm did not say."""
    text = ask("squeue", "--noheader", "--format=%A", "--name", name)
    return None if text is None else sorted(set(text.split()))


def begin(name: str) -> None:
    """Note whose run this is, so that a later one can tell whether it lives."""
    _RUNS.mkdir(parents=True, exist_ok=True)
    facts = {"pid": os.getpid(), "host": os.uname().nodename, "created": process_start()}
    (_RUNS / f"{name}.json").write_text(json.dumps(facts))


def end(name: str) -> None:
    """Forget a run that has left no job."""
    if jobs_of_run(name) == []:
        (_RUNS / f"{name}.json").unlink(missing_ok=True)


def _lives(path: Path) -> bool:
    try:
        return still_lives(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def cancel_orphans() -> None:
    """Cancel the jobs of runs that no longer live: their cells would run twice.

    Waits until they have left the queue, at most ten minutes; what is not known to have left is
    looked at again by the next run. Records that they wrote are kept.
    """
    for path in sorted(_RUNS.glob("*.json")):
        if _lives(path):
            continue
        jobs = jobs_of_run(path.stem)
        if jobs:
            ask("scancel", *jobs)
            text = f"cancelled {len(jobs)} jobs of a run that no longer lives: {', '.join(jobs)}"
            say(f"[transect] {text}")
        limit = time.monotonic() + _ENDING_S
        while jobs_of_run(path.stem) != [] and time.monotonic() < limit:
            time.sleep(0.5)
        if jobs_of_run(path.stem) == []:
            path.unlink(missing_ok=True)
