"""What repeats took, what more of them will take, and what is left of a budget."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from transect.domain.cell import Cell
from transect.domain.record import Record
from transect.engine.job import Job


class Spending:
    """Seconds of the cells of one block, from their records; `record` reads a job's, or gives None.

    `elsewhere`: what other blocks took of each budget, by its `pool`.
    """

    def __init__(
        self, jobs: Iterable[Job], record: Callable[[Job], Record | None], elsewhere: Mapping[str, float]
    ) -> None:
        self._record, self._elsewhere = record, elsewhere
        self._alike: dict[Cell, list[Job]] = defaultdict(list)
        self._of_stage: dict[str, list[Job]] = defaultdict(list)
        for job in jobs:
            self._alike[job.cell.without_repeat()].append(job)
            self._of_stage[job.cell.stage].append(job)

    def seconds(self, job: Job) -> float | None:
        """Return how long a cell took, with all that surrounds its payload; None without a record."""
        record = self._record(job)
        if record is None:
            return None
        ended, started = map(datetime.fromisoformat, (record.ended, record.started))
        return (ended - started).total_seconds()

    def expected(self, jobs: Iterable[Job], *, by_node: bool = False) -> float:
        """Return the seconds, or node-seconds, that these will take: as long as their other repeats.

        One that has none takes as long as others of its stage, and nothing where none ran.
        """
        return sum(self._expected(job) * (job.cell.nodes if by_node else 1) for job in jobs)

    def _expected(self, job: Job) -> float:
        for others in (self._alike[job.cell.without_repeat()], self._of_stage[job.cell.stage]):
            known = [seconds for one in others if (seconds := self.seconds(one)) is not None]
            if known:
                return statistics.fmean(known)
        return 0.0

    def spent(self, jobs: Iterable[Job], *, by_node: bool) -> float:
        """Return the seconds, or node-seconds, that these took, in whichever run they ran."""
        return sum((self.seconds(job) or 0.0) * (job.cell.nodes if by_node else 1) for job in jobs)

    def left(self, until: Mapping[str, Any], cells: Sequence[Cell], jobs: Iterable[Job]) -> float:
        """Return what is left for these cells, of which `jobs` are what may not be needed.

        All that others left, or the cells' own share where blocks run side by side.
        """
        if until["budget_s"] is None:
            return float("inf")
        own = self.spent(jobs, by_node=until["by_node"])
        if until["share_s"] is not None:
            return float(until["share_s"] * len(cells)) - own
        return float(until["budget_s"]) - self._elsewhere.get(until["pool"], 0.0) - own
