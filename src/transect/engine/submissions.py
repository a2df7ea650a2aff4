"""What Snakemake's executor and the Snakefile's handlers tell each other about a run's jobs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class Submissions:
    """The jobs of this run of Snakemake.

    `failed` holds the last message of each rule whose job failed or was refused. `run` is what the
    executor calls the run, "" where there is none.
    """

    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    study: str = ""
    rules: Collection[str] = ()
    run: str = ""

    def job_name(self, rule: str) -> str:
        """Return a job's name in Slurm's queue, such as `train.quick.1a2b3c4d`."""
        # slurmdbd keeps 255 characters of a name, and finds jobs by all of it.
        return f"{rule[:60] if rule in self.rules else 'job'}.{self.study[:120]}.{self.run[:60]}"

    def job_names(self) -> list[str]:
        """Return all names that jobs of this run may have: by these Slurm is asked for them."""
        return [self.job_name(rule) for rule in (*self.rules, "job")]


# One run of Snakemake is one process: its executor and its handlers share this.
SUBMISSIONS = Submissions()
