"""More repeats in a block: which cells go on, round by round, and why the others stop.

Nothing is remembered but records: a block that was killed asks the same question again, and gets the
same answer from the same records. So a stricter `until` goes on where the last one stopped. What other
blocks took of a common budget stands in their stamps.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest
from transect.domain.record import Record, read_record
from transect.domain.until import Aims, Contest, looks_of
from transect.engine.job import Job
from transect.engine.spending import Spending

if TYPE_CHECKING:
    from transect.analysis.contests import Undecided, Verdicts

CAP, BUDGET, TIME = "cap", "budget", "time of the job"
# With a budget, time goes to what it may decide.
REACH = "no verdict in reach of the cap"


def until_of(spec: dict[str, Any]) -> str:
    """Return what tells one `until` from another; empty for a cell that only others need."""
    return digest([canonical_json(spec["until"])])[:16] if "until" in spec else ""


def deadline_of(head: dict[str, Any], jobs: Sequence[Job]) -> float | None:
    """Return when the last optional repeat of a block may begin; None where no scheduler ends it."""
    if head.get("minutes") is None or not jobs:
        return None
    longest = float(jobs[0].spec["cell_limits"]["seconds"])
    return time.monotonic() + 60 * float(head["minutes"]) - longest


class Repetition:
    """Decides after each look which repeats of a block's cells run next.

    `deadline` is the time (monotonic, in s) after which nothing more begins, or None. `elsewhere`: what
    other blocks spent of each budget, by its `pool`.
    """

    def __init__(
        self, jobs: Iterable[Job], deadline: float | None = None, elsewhere: Mapping[str, float] | None = None
    ) -> None:
        self._jobs = {(job.cell.stage, job.cell.id): job for job in jobs}
        self._deadline = deadline
        self._of_cell: dict[Cell, list[Job]] = defaultdict(list)
        for job in self._jobs.values():
            if "until" in job.spec:
                self._of_cell[job.cell.without_repeat()].append(job)
        for members in self._of_cell.values():
            members.sort(key=lambda job: job.cell.repeat)
        self._records: dict[tuple[str, str], Record] = {}
        self._spending = Spending(self._jobs.values(), self._record, elsewhere or {})
        # Why each cell's repeats ended, by its id without repeat.
        self.ends: dict[str, str] = {}

    @property
    def asked(self) -> bool:
        """Whether any repeat of this block may not be needed."""
        return any(job.spec.get("optional") for job in self._jobs.values())

    def spared(self) -> dict[str, str]:
        """Return the repeats that were not needed, by `STAGE/ID`, and for which `until`."""
        return {
            f"{stage}/{cell_id}": until_of(job.spec)
            for (stage, cell_id), job in self._jobs.items()
            if job.spec.get("optional") and not (job.folder / "record.json").exists()
        }

    def held(self) -> dict[str, str]:
        """Return the optional repeats that have a record, as `spared` does: one that goes is missed."""
        return {
            f"{stage}/{cell_id}": until_of(job.spec)
            for (stage, cell_id), job in self._jobs.items()
            if job.spec.get("optional") and (job.folder / "record.json").exists()
        }

    def spent(self) -> dict[str, float]:
        """Return the seconds, or node-seconds, that this block took of each budget, by its `pool`."""
        pools = {}
        for cell in self._of_cell:
            until = self._until(cell)
            if until["budget_s"] is not None and until["pool"] not in pools:
                every = [one for one in self._of_cell if self._until(one)["pool"] == until["pool"]]
                pools[until["pool"]] = self._spending.spent(self._optional(every), by_node=until["by_node"])
        return pools

    def run(self, run_one: Callable[[Job], None]) -> None:
        """Run what is needed, look by look: each cell in turn, one repeat after another."""
        while batch := self._next():
            for job in batch:
                if self._deadline is not None and time.monotonic() > self._deadline:
                    return self._end_all(TIME)
                run_one(job)
                if self._record(job) is None:
                    raise BadInput(
                        f"{job.folder / 'record.json'}: gone or unreadable right after its cell ran: expected "
                        "its record, without which it would run for ever"
                    )

    def _end_all(self, why: str) -> None:
        for cell in self._of_cell:
            self.ends.setdefault(cell.id, why)

    def _next(self) -> list[Job]:
        """Return the jobs up to the next look of every cell that is open, in rounds."""
        wanted: list[Job] = []
        for members in self._by_until():
            # A look that was cut short is finished first: half of one decides nothing. Not beyond the budget:
            # after an edited `until` it may have been none.
            cut = [cell for cell in members if self._between_looks(cell)]
            going_on = self._affordable(members, cut, [cut], {}) if cut else []
            going_on = going_on or self._open(members)
            following = [self._up_to_next_look(cell) for cell in going_on]
            # Those with fewer repeats catch up.
            first = min((jobs[-1].cell.repeat for jobs in following), default=0)
            wanted += [job for jobs in following if jobs[-1].cell.repeat == first for job in jobs]
        places = {key: place for place, key in enumerate(self._jobs)}
        wanted.sort(key=lambda job: (job.cell.repeat, places[_key(job)]))
        # What several of them need runs once, before the first.
        batch = {_key(one): one for job in wanted for one in (*self._needs(job), job)}
        return list(batch.values())

    def _open(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that need more repeats, and note why the others need none."""
        verdicts = self._verdicts(cells)
        going_on = []
        for cell in cells:
            standing = verdicts.of.get(cell)
            why = "no result" if standing is None else standing.value
            if why == "open":
                why = "" if self._up_to_next_look(cell) else CAP
            if why:
                self.ends[cell.id] = why
            else:
                going_on.append(cell)
        hoped = [one for one in verdicts.open if one.in_reach]
        if not cells or self._until(cells[0])["budget_s"] is None:
            hoped = list(verdicts.open)
        units = [self._together(one, going_on) for one in hoped]
        paired = {cell for one in verdicts.open for cell in one.pair}
        hopeless = paired - {cell for one in hoped for cell in one.pair}
        units += [[cell] for cell in going_on if cell not in paired]
        return self._affordable(cells, going_on, units, dict.fromkeys(hopeless, REACH))

    def _together(self, one: Undecided, going_on: Sequence[Cell]) -> list[Cell]:
        """Return who of an undecided pair goes on: both, or the one that is behind."""
        able = [cell for cell in one.pair if cell in going_on]
        fewest = min(map(self._done, able), default=0)
        return [cell for cell in able if self._done(cell) == fewest]

    def _affordable(
        self, cells: Sequence[Cell], going_on: Sequence[Cell], units: Iterable[list[Cell]], why: dict[Cell, str]
    ) -> list[Cell]:
        """Return those whose next look ends within the budget and the job, and note why others do not.

        `units` in their order: those of one go on together, since half of a pair tells nothing more. `why` is
        known of some.
        """
        until = self._until(cells[0])
        left_s = self._spending.left(until, cells, self._optional(self._pooled(cells)))
        time_s = float("inf") if self._deadline is None else self._deadline - time.monotonic()
        begun: set[tuple[str, str]] = set()
        chosen: dict[Cell, None] = {}
        for unit in units:
            look = [one for cell in unit for job in self._up_to_next_look(cell) for one in (*self._needs(job), job)]
            new = {_key(job): job for job in look if _key(job) not in begun}
            if not new:
                continue
            wall_s = self._spending.expected(new.values())
            cost_s = self._spending.expected(new.values(), by_node=until["by_node"])
            if left_s <= 0 or cost_s > left_s:
                why |= dict.fromkeys(unit, BUDGET)
            elif wall_s > time_s:
                why |= dict.fromkeys(unit, TIME)
            else:
                left_s, time_s = left_s - cost_s, time_s - wall_s
                begun |= new.keys()
                chosen |= dict.fromkeys(unit)
        for cell in going_on:
            self.ends.pop(cell.id, None)
            if cell not in chosen:
                self.ends[cell.id] = why.get(cell, BUDGET)
        return list(chosen)

    def _pooled(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        """Return the block's cells that spend what these do: all of one budget, unless each has a share."""
        until = self._until(cells[0])
        if until["share_s"] is not None:
            return cells
        return [cell for cell in self._of_cell if self._until(cell)["pool"] == until["pool"]]

    def _optional(self, cells: Sequence[Cell]) -> list[Job]:
        """Return the cells' repeats that may not be needed, with what only they need."""
        repeats = [job for cell in cells for job in self._of_cell[cell] if job.spec.get("optional")]
        every = {_key(one): one for job in repeats for one in (*self._sources(job), job)}
        return list(every.values())

    def _until(self, cell: Cell) -> dict[str, Any]:
        until: dict[str, Any] = self._of_cell[cell][0].spec["until"]
        return until

    def _by_until(self) -> list[list[Cell]]:
        """Part cells by the stage's contest and budget: those that are judged together."""
        parts: dict[str, list[Cell]] = defaultdict(list)
        for cell, jobs in self._of_cell.items():
            parts[f"{cell.stage} {until_of(jobs[0].spec | {'until': self._shared(jobs)})}"].append(cell)
        return list(parts.values())

    def _shared(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """Return what is the same for all cells of one `until`, whatever their own floors."""
        until: dict[str, Any] = jobs[0].spec["until"]
        return {key: until[key] for key in until if key not in ("floor", "cap")}

    def _done(self, cell: Cell) -> int:
        return sum(self._record(job) is not None for job in self._of_cell[cell])

    def _between_looks(self, cell: Cell) -> bool:
        until, done = self._until(cell), self._done(cell)
        return until["floor"] < done < until["cap"] and done not in looks_of(until["floor"], until["cap"])

    def _up_to_next_look(self, cell: Cell) -> list[Job]:
        jobs = self._of_cell[cell]
        until = jobs[0].spec["until"]
        done = self._done(cell)
        target = next((n for n in looks_of(until["floor"], until["cap"]) if n > done), 0)
        return [job for job in jobs if job.cell.repeat < target and self._record(job) is None]

    def _sources(self, job: Job) -> list[Job]:
        """Return the cells that only this one needs, or others that may not be needed."""
        sources = (self._jobs.get(tuple(source)) for source in job.spec["inputs"].values())
        return [one for one in sources if one is not None and one.spec.get("optional")]

    def _needs(self, job: Job) -> list[Job]:
        """Return those of them that have to run before it."""
        return [source for source in self._sources(job) if self._record(source) is None]

    def _verdicts(self, cells: Sequence[Cell]) -> Verdicts:
        # Only a block that may go on pays for scipy.
        from transect.analysis.contests import standings
        from transect.analysis.groups import Floors, group_records

        until = self._until(cells[0])
        records = [record for cell in cells for job in self._of_cell[cell] if (record := self._record(job)) is not None]
        groups = group_records(records)
        aims = Aims(margin=until["margin"], looks={cells[0].stage: until["looks"]})
        return standings(
            groups,
            Contest.of(until["contest"]),
            Floors(groups, aims),
            interval=until["interval"],
            decide=until["decide"],
            looks=until["looks"],
            ways=until["ways"],
            cap=until["cap"],
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
