"""The jobs of one run of Snakemake, and those that an earlier run of the same study left in the queue."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.terminal import say
from transect.engine.scheduler import ask

_ENDING_S = 600
_ASKING_S = 300
_POLL_S = 0.5


def jobs_named(names: Sequence[str], patience_s: float = 0) -> list[str] | None:
    """Return the ids of the jobs of these names that are queued or running; None: Slurm did not say."""
    text = ask("squeue", "--noheader", "--format=%A", "--name", ",".join(names), patience_s=patience_s)
    return None if text is None else sorted(set(text.split()))


def begin(file: Path, names: Sequence[str]) -> None:
    """Note by which names a run's jobs are found. Before it submits the first."""
    write_atomic(file, json.dumps(names))


def end(file: Path, names: Sequence[str]) -> None:
    """Forget a run that has left no job."""
    if jobs_named(names) == []:
        file.unlink(missing_ok=True)


def cancel_earlier(runs: Path, study: str) -> None:
    """Cancel what earlier runs of a study left in the queue: their cells would run twice.

    For who holds the claim on the study: whichever host they ran on, they no longer do. Waits until
    the jobs have left the queue; records that they wrote are kept. Raises BadInput while there are
    any, or nobody can tell.
    """
    for file in sorted(runs.glob("*.json")):
        if shutil.which("squeue") is None:
            return  # another machine's; what a job of it still runs, it holds
        names = json.loads(file.read_text())
        jobs = jobs_named(names, _ASKING_S)
        if jobs:
            text = f"cancels {len(jobs)} jobs of a run that no longer lives: {', '.join(jobs)}"
            say(f"[transect] {text}")
            done = ask("scancel", *jobs, patience_s=_ASKING_S) is not None
            limit = time.monotonic() + (_ENDING_S if done else 0)
            while (jobs := jobs_named(names, _ASKING_S)) and time.monotonic() < limit:
                time.sleep(_POLL_S)
        if jobs is None:
            raise BadInput(
                f"an earlier run of study '{study}' may have jobs in the queue, and Slurm does not "
                "answer: try again when it does"
            )
        if jobs:
            raise BadInput(
                f"jobs {', '.join(jobs)} of an earlier run of study '{study}' are still in the queue: "
                f"end them by `scancel {' '.join(jobs)}`, or wait for their end, and start again"
            )
        file.unlink(missing_ok=True)
