"""What Snakemake's executor learnt about its jobs, for those who clean up after a run."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["SUBMISSIONS", "Submissions"]


@dataclass(slots=True)
class Submissions:
    """`failed` holds the last message of each rule whose job failed or was refused."""

    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


# One run of Snakemake is one process: its executor writes here, its handlers read.
SUBMISSIONS = Submissions()
