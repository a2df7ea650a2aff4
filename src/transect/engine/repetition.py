"""More repeats in a block: of which cells, one after another, and why the others stop.

Cells go on while a pair of theirs is open: while its interval is too wide to tell a difference from none, which does not
depend on what the difference is; or until the two are apart beyond doubt. Nothing is remembered but records: a
block that was killed goes on as it would have. A stricter `repeat_until` goes on where the last one stopped.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from transect.domain.cell import Cell
from transect.domain.errors import BadInput
from transect.domain.files import canonical_json, digest
from transect.domain.pairs import Pair, joined, pairs_of
from transect.domain.record import Record, Status, own_seconds, read_record
from transect.engine.job import Job

# Why a cell's repeats end.
ENOUGH, NOTHING, MAXIMUM, BUDGET, TIME = "interval", "nothing to compare", "max_repeats", "budget", "time of the job"

# Stage and id of a cell without its repeat.
Point = tuple[str, str]
# Half the width of the interval of each pair's log ratio (0: apart beyond doubt), and from how many repeats.
HalfWidths = Callable[[Sequence[Pair], Sequence[Record]], Mapping[Pair, tuple[float, int]]]


def repeat_until_of(spec: dict[str, Any]) -> str:
    """Return what identifies a `repeat_until`, its pairs included; empty for a cell that only others need."""
    until = spec.get("repeat_until")
    return digest([canonical_json([until, spec.get("pairs", [])])])[:16] if until is not None else ""


def deadline_of(head: dict[str, Any], jobs: Sequence[Job]) -> float | None:
    """Return when the last optional repeat of a block may begin; None where no scheduler ends it."""
    if head.get("minutes") is None or not jobs:
        return None
    longest = float(jobs[0].spec["cell_limits"]["seconds"])
    return time.monotonic() + 60 * float(head["minutes"]) - longest


def _half_widths(pairs: Sequence[Pair], records: Sequence[Record]) -> Mapping[Pair, tuple[float, int]]:
    # Only a block that may go on pays for scipy.
    from transect.analysis.contrasts import pair_half_widths

    return pair_half_widths(pairs, records)


class Repetition:
    """Decides after each round which repeats of a block's cells run next.

    `deadline` is the time (monotonic, in s) after which nothing more begins, or None.
    """

    def __init__(
        self, jobs: Iterable[Job], deadline: float | None = None, half_widths: HalfWidths = _half_widths
    ) -> None:
        self._jobs = {(job.cell.stage, job.cell.id): job for job in jobs}
        self._deadline, self._half_widths = deadline, half_widths
        self._of_point: dict[Point, list[Job]] = defaultdict(list)
        for job in self._jobs.values():
            if "repeat_until" in job.spec:
                self._of_point[_point(job.cell)].append(job)
        for members in self._of_point.values():
            members.sort(key=lambda job: job.cell.repeat)
        here = self._of_point.keys()
        pairs = pairs_of(job.spec for job in self._jobs.values())
        # On a scheduler one side may run in another job.
        self._pairs = [pair for pair in pairs if here >= {*pair.points}]
        self._records: dict[tuple[str, str], Record] = {}
        # Why each cell's repeats ended, by its id without repeat; of an open pair also what would decide it.
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

    def run(self, run_some: Callable[[Sequence[Job]], None]) -> None:
        """Run what is needed, round by round: each heat gets one repeat more, both sides of a pair the same one."""
        while heats := self._round():
            for heat in heats:
                if self._is_over(heat[0]):
                    continue
                # What several of them need runs once, before the first.
                needs = {need.folder: need for job in heat for need in self._needs(job)}
                for current in (*([need] for need in needs.values()), heat):
                    if self._is_late(current):
                        self._open(TIME)
                        return
                    run_some(current)
                    for job in current:
                        if self._record(job) is None:
                            raise BadInput(f"{job.folder / 'record.json'}: gone or unreadable after its cell ran")

    def _is_late(self, jobs: Sequence[Job]) -> bool:
        """Whether the job's time may end before these have."""
        more = sum(float(job.spec["cell_limits"]["seconds"]) for job in jobs[1:])
        return self._deadline is not None and time.monotonic() + more > self._deadline

    def _round(self) -> list[list[Job]]:
        """Return the next repeat of each heat that goes on; those that have fewer catch up first."""
        heat_of = self._open()
        missing: dict[Point, list[Job]] = defaultdict(list)
        for point in self._of_point:
            if point in heat_of:
                missing[heat_of[point]] += self._missing(point)
        least = min((job.cell.repeat for jobs in missing.values() for job in jobs), default=0)
        heats = [[job for job in jobs if job.cell.repeat == least] for jobs in missing.values()]
        return [heat for heat in heats if heat]

    def _open(self, why: str = "") -> dict[Point, Point]:
        """Return the points that go on, and for each one that stands for its heat; note why others stop.

        `why`: nobody goes on any more, for this reason.
        """
        widths = self._half_widths(self._pairs, self._known()) if self._pairs else {}
        open_pairs: list[Pair] = []
        # Of each point the pair, or its own interval, that missed by most.
        worst: dict[Point, tuple[float, str]] = {}
        for pair in self._pairs:
            if pair not in widths:
                continue
            (width, repeats), (point, base) = widths[pair], pair.points
            asked = self._asked(point)
            missed = 0.0 if asked is None else width / asked
            if (missed <= 1 and asked is not None) or (self._is_narrow(point) and self._is_narrow(base)):
                lack = (0.0, ENOUGH)
            else:
                over = why or (BUDGET if self._is_over(self._of_point[point][0]) else MAXIMUM)
                lack = (max(missed, 1.0), f"{over}{self._lack(pair, width, repeats)}")
                if over == MAXIMUM and (self._missing(point) or self._missing(base)):
                    open_pairs.append(pair)
            for one in pair.points:
                worst[one] = max(worst.get(one, lack), lack)
        heat_of = joined(open_pairs)
        for point in self._of_point.keys() - {point for pair in self._pairs for point in pair.points}:
            if (narrow := self._is_narrow(point)) is not None:
                over = why or (BUDGET if self._is_over(self._of_point[point][0]) else MAXIMUM)
                worst[point] = (0.0, ENOUGH) if narrow else (1.0, over)
                if not narrow and over == MAXIMUM:
                    heat_of[point] = point
        self.stop_reasons = {point[1]: worst.get(point, (0.0, NOTHING))[1] for point in self._of_point}
        return heat_of

    def _lack(self, pair: Pair, width: float, repeats: int) -> str:
        """Say by how much a pair missed, and what would decide it: an interval narrows as the root of its repeats."""
        asked = self._asked(pair.points[0])
        if asked is None or not math.isfinite(width):
            return ""
        needed = max(repeats + 1, math.ceil(repeats * (width / asked) ** 2))
        seconds = sum(
            fmean(own_seconds(record) for job in self._of_point[point] if (record := self._record(job)) is not None)
            for point in pair.points
        )
        return (
            f": the ratio of {pair.cell} to {pair.base} is known within {100 * math.expm1(width):.0f} %, "
            f"{100 * math.expm1(asked):.1f} % would decide: about {needed - repeats} more repeats, "
            f"{(needed - repeats) * seconds / 60:.1f} minutes"
        )

    def _asked(self, point: Point) -> float | None:
        """Return how wide half of an interval may be: then a pair is apart or the same, wherever its ratio lies."""
        margin = self._rule(point)["equivalence_margin"]
        return None if margin is None else math.log1p(margin) / 2

    def _is_narrow(self, point: Point) -> bool | None:
        """Whether a cell's own interval is as narrow as is asked for; None where none is, or where it has no value."""
        asked, name = self._rule(point)["ci_half_width"], self._rule(point)["metric"]
        if asked is None:
            return None
        from transect.stats.noise import pooled_noise
        from transect.stats.verdicts import half_width

        alike = [other for other in self._of_point if other[0] == point[0] and self._rule(other)["metric"] == name]
        values = {
            other: [value for job in self._of_point[other] if (value := _value(self._record(job), name)) is not None]
            for other in alike
        }
        return half_width(values[point], pooled_noise(values.values())) <= asked if values[point] else None

    def _is_over(self, job: Job) -> bool:
        """Whether the block's optional repeats, with what only they need, took the budget, in whichever run."""
        budget_s = job.spec["repeat_until"]["budget_s"]
        return budget_s is not None and budget_s <= sum(
            own_seconds(record)
            for job in self._jobs.values()
            if job.spec.get("optional") and (record := self._record(job)) is not None
        )

    def _rule(self, point: Point) -> dict[str, Any]:
        return dict(self._of_point[point][0].spec["repeat_until"])

    def _missing(self, point: Point) -> list[Job]:
        return [job for job in self._of_point[point] if self._record(job) is None]

    def _needs(self, job: Job) -> list[Job]:
        sources = (self._jobs.get(tuple(source)) for source in job.spec["inputs"].values())
        return [job for job in sources if job is not None and job.spec.get("optional") and self._record(job) is None]

    def _known(self) -> list[Record]:
        found = (self._record(job) for members in self._of_point.values() for job in members)
        return [record for record in found if record is not None]

    def _record(self, job: Job) -> Record | None:
        """Return a cell's record, read once. One that holds no more was removed before anything ran."""
        key = job.cell.stage, job.cell.id
        if key not in self._records:
            try:
                self._records[key] = read_record(job.folder / "record.json")
            except BadInput:
                return None
        return self._records[key]


def _point(cell: Cell) -> Point:
    return cell.stage, cell.without_repeat().id


def _value(record: Record | None, name: str) -> float | None:
    return record.value(name) if record is not None and record.status is Status.OK else None
