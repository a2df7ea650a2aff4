"""More repeats in a block: which cells go on, round by round, and why the others stop.

Nothing is remembered but records: a block that was killed asks the same question again, and gets the
same answer from the same records. So a stricter `repeat_until` goes on where the last one stopped.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest
from transect.domain.record import Record, read_record
from transect.domain.until import AnalysisPlan, ComparisonRule, looks_of
from transect.engine.job import Job

if TYPE_CHECKING:
    from transect.analysis.contests import Standing

# Why a cell's repeats end, besides those of `Standing`.
MAXIMUM, BUDGET, TIME = "max_repeats", "budget", "time of the job"


def repeat_until_of(spec: dict[str, Any]) -> str:
    """Return what identifies a `repeat_until`; empty for a cell that only others need."""
    return digest([canonical_json(spec["repeat_until"])])[:16] if "repeat_until" in spec else ""


def deadline_of(head: dict[str, Any], jobs: Sequence[Job]) -> float | None:
    """Return when the last optional repeat of a block may begin; None where no scheduler ends it."""
    if head.get("minutes") is None or not jobs:
        return None
    longest = float(jobs[0].spec["cell_limits"]["seconds"])
    return time.monotonic() + 60 * float(head["minutes"]) - longest


class Repetition:
    """Decides after each look which repeats of a block's cells run next.

    `deadline` is the time (monotonic, in s) after which nothing more begins, or None.
    """

    def __init__(self, jobs: Iterable[Job], deadline: float | None = None) -> None:
        self._jobs = {(job.cell.stage, job.cell.id): job for job in jobs}
        self._deadline = deadline
        self._of_cell: dict[Cell, list[Job]] = defaultdict(list)
        for job in self._jobs.values():
            if "repeat_until" in job.spec:
                self._of_cell[job.cell.without_repeat()].append(job)
        for members in self._of_cell.values():
            members.sort(key=lambda job: job.cell.repeat)
        self._records: dict[tuple[str, str], Record] = {}
        # Why each cell's repeats ended, by its id without repeat.
        self.stop_reasons: dict[str, str] = {}

    @property
    def has_optional_repeats(self) -> bool:
        """Whether any repeat of this block may not be needed."""
        return any(job.spec.get("optional") for job in self._jobs.values())

    def skipped_optional(self) -> dict[str, str]:
        """Return the repeats that were not needed, by `STAGE/ID`, and for which `repeat_until`."""
        return self._optional(with_record=False)

    def completed_optional(self) -> dict[str, str]:
        """Return the optional repeats that have a record, as `skipped_optional` does: one that goes is missed."""
        return self._optional(with_record=True)

    def _optional(self, *, with_record: bool) -> dict[str, str]:
        return {
            f"{stage}/{cell_id}": repeat_until_of(job.spec)
            for (stage, cell_id), job in self._jobs.items()
            if job.spec.get("optional") and (job.folder / "record.json").exists() is with_record
        }

    def run(self, run_one: Callable[[Job], None]) -> None:
        """Run what is needed, look by look: each cell in turn, one repeat after another."""
        while wanted := self._next():
            for job in wanted:
                if not self._is_over(job):
                    # What several of them need runs once, before the first.
                    for current in (*self._needs(job), job):
                        if self._deadline is not None and time.monotonic() > self._deadline:
                            for cell in self._of_cell:
                                self.stop_reasons.setdefault(cell.id, TIME)
                            return
                        run_one(current)
                        if self._record(current) is None:
                            raise BadInput(f"{current.folder / 'record.json'}: gone or unreadable after its cell ran")

    def _next(self) -> list[Job]:
        wanted: list[Job] = []
        for members in self._by_repeat_until():
            over = self._is_over(self._of_cell[members[0]][0])
            # A look that was cut short is finished first: half of one decides nothing.
            cut = [] if over else [cell for cell in members if self._between_looks(cell)]
            going_on = cut or self._open(members)
            if over:
                self.stop_reasons |= {cell.id: BUDGET for cell in going_on}
                continue
            following = [self._up_to_next_look(cell) for cell in going_on]
            # Those with fewer repeats catch up.
            first = min((jobs[-1].cell.repeat for jobs in following), default=0)
            wanted += [job for jobs in following if jobs[-1].cell.repeat == first for job in jobs]
        places = {key: place for place, key in enumerate(self._jobs)}
        return sorted(wanted, key=lambda job: (job.cell.repeat, places[_key(job)]))

    def _open(self, cells: Sequence[Cell]) -> list[Cell]:
        standings = self._standings(cells)
        going_on = []
        for cell in cells:
            standing = standings.get(cell)
            why = "no result" if standing is None else standing.value
            if why == "open" and self._up_to_next_look(cell):
                self.stop_reasons.pop(cell.id, None)
                going_on.append(cell)
            else:
                self.stop_reasons[cell.id] = MAXIMUM if why == "open" else why
        return going_on

    def _is_over(self, job: Job) -> bool:
        """Whether the block's optional repeats, with what only they need, took the budget, in whichever run."""
        budget_s = job.spec["repeat_until"]["budget_s"]
        return budget_s is not None and budget_s <= sum(
            (datetime.fromisoformat(record.ended) - datetime.fromisoformat(record.started)).total_seconds()
            for job in self._jobs.values()
            if job.spec.get("optional") and (record := self._record(job)) is not None
        )

    def _repeat_until(self, cell: Cell) -> dict[str, Any]:
        return dict(self._of_cell[cell][0].spec["repeat_until"])

    def _looks(self, cell: Cell) -> Sequence[int]:
        rule = self._repeat_until(cell)
        return looks_of(rule["min_repeats"], rule["max_repeats"])

    def _by_repeat_until(self) -> list[list[Cell]]:
        """Part cells by stage and `repeat_until`, whatever their own numbers of repeats: those that are judged together."""
        parts: dict[str, list[Cell]] = defaultdict(list)
        for cell in self._of_cell:
            shared = self._repeat_until(cell) | {"min_repeats": 0, "max_repeats": 0}
            parts[f"{cell.stage} {canonical_json(shared)}"].append(cell)
        return list(parts.values())

    def _done(self, cell: Cell) -> int:
        return sum(self._record(job) is not None for job in self._of_cell[cell])

    def _between_looks(self, cell: Cell) -> bool:
        rule, done = self._repeat_until(cell), self._done(cell)
        return rule["min_repeats"] < done < rule["max_repeats"] and done not in self._looks(cell)

    def _up_to_next_look(self, cell: Cell) -> list[Job]:
        target = next((n for n in self._looks(cell) if n > self._done(cell)), 0)
        return [job for job in self._of_cell[cell] if job.cell.repeat < target and self._record(job) is None]

    def _needs(self, job: Job) -> list[Job]:
        sources = (self._jobs.get(tuple(source)) for source in job.spec["inputs"].values())
        return [job for job in sources if job is not None and job.spec.get("optional") and self._record(job) is None]

    def _standings(self, cells: Sequence[Cell]) -> dict[Cell, Standing]:
        # Only a block that may go on pays for scipy.
        from transect.analysis.contests import standings
        from transect.analysis.groups import Floors, group_records

        rule = self._repeat_until(cells[0])
        records = [record for cell in cells for job in self._of_cell[cell] if (record := self._record(job)) is not None]
        groups = group_records(records)
        floors = Floors(groups, AnalysisPlan(margin=rule["equivalence_margin"], looks={cells[0].stage: rule["looks"]}))
        return standings(
            groups,
            ComparisonRule.of(rule["comparison"]),
            floors,
            interval=rule["ci_half_width"],
            decide=rule["decide"],
            looks=rule["looks"],
            ways=rule["ways"],
        )

    def _record(self, job: Job) -> Record | None:
        """Return a cell's record, read once. One that holds no more was removed before anything ran."""
        key = _key(job)
        if key not in self._records:
            try:
                self._records[key] = read_record(job.folder / "record.json")
            except BadInput:
                return None
        return self._records[key]


def _key(job: Job) -> tuple[str, str]:
    return job.cell.stage, job.cell.id
