"""The jobs of one run of Snakemake, and those that an earlier run of the same study left in the queue."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.domain.terminal import say
from transect.engine.scheduler import NoScheduler, scheduler

_ENDING_S = 600
_ASKING_S = 300
_POLL_S = 0.5


@dataclass(slots=True)
class Submissions:
    """What Snakemake's executor shares with the Snakefile's handlers: the run, and the jobs that failed.

    `failed` holds the last message of each rule whose job failed or was refused. `run` is what the
    executor calls the run, "" where there is none.
    """

    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    study: str = ""
    rules: Collection[str] = ()
    run: str = ""

    def job_name(self, rule: str) -> str:
        """Return a job's name in the queue, such as `train.quick.1a2b3c4d`."""
        # slurmdbd keeps 255 characters of a name, and finds jobs by all of it.
        return f"{rule[:60] if rule in self.rules else 'job'}.{self.study[:120]}.{self.run[:60]}"

    def job_names(self) -> list[str]:
        """Return all names that jobs of this run may have: by these the scheduler is asked for them."""
        return [self.job_name(rule) for rule in (*self.rules, "job")]


# One run of Snakemake is one process: its executor and its handlers share this.
SUBMISSIONS = Submissions()


def begin(file: Path, names: Sequence[str]) -> None:
    """Note by which names a run's jobs are found. Before it submits the first."""
    write_atomic(file, json.dumps(names))


def end(file: Path, names: Sequence[str]) -> None:
    """Forget a run that has left no job."""
    if scheduler().queued(names) == []:
        file.unlink(missing_ok=True)


def cancel_earlier(runs: Path, study: str) -> None:
    """Cancel what earlier runs of a study left in the queue: their cells would run twice.

    For who holds the claim on the study: whichever host they ran on, they no longer do. Waits until
    the jobs have left the queue; records that they wrote are kept. Raises BadInput while there are
    any, or nobody can tell.
    """
    queue = scheduler()
    if isinstance(queue, NoScheduler):
        return  # another machine's; what a job of it still runs, it holds
    for file in sorted(runs.glob("*.json")):
        names = json.loads(file.read_text())
        jobs = queue.queued(names, _ASKING_S)
        if jobs:
            say(f"[transect] cancels {len(jobs)} jobs of a run that no longer lives: {', '.join(jobs)}")
            limit = time.monotonic() + (_ENDING_S if queue.cancel(jobs, _ASKING_S) else 0)
            while (jobs := queue.queued(names, _ASKING_S)) and time.monotonic() < limit:
                time.sleep(_POLL_S)
        if jobs is None:
            raise BadInput(
                f"an earlier run of study '{study}' may have jobs in the queue: the scheduler does not answer"
            )
        if jobs:
            how = f"end them by `{queue.how_to_cancel(*jobs)}`, or wait for their end, and start again"
            raise BadInput(f"jobs {', '.join(jobs)} of an earlier run of study '{study}' are still in the queue: {how}")
        file.unlink(missing_ok=True)
