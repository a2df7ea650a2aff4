"""Repeats of one point gathered into a group: the unit that is summarised and compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from transect.analysis.entries import AnyRecord
from transect.analysis.kinds import Kind, kind_of
from transect.analysis.labels import in_order
from transect.domain.cell import Cell
from transect.domain.record import Cause, Status
from transect.domain.until import MARGIN, MIN_RUNS
from transect.stats.noise import trimmed
from transect.stats.samples import NoiseFloor, Summary, noise_floor, paired_noise_floor, summarise

if TYPE_CHECKING:
    from transect.analysis.turns import PairNoise

# Names the set of all groups of a stage, those that learn from random numbers too.
_ANY_INPUT = True

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
C_co = TypeVar("C_co", bound=Cell, default=Cell, covariant=True)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Part items by their keys, both in the order in which they come.

    >>> grouped(["iris", "digits", "imagenet"], lambda name: name[0])
    {'i': ['iris', 'imagenet'], 'd': ['digits']}
    """
    parts: dict[K, list[T]] = defaultdict(list)
    for item in items:
        parts[key(item)].append(item)
    return dict(parts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Group(Generic[C_co]):
    """All records of one point of the grid, whatever their repeat and status.

    What knows its stage takes groups of that stage's cells, such as `Group[TrainCell]`. `ok` holds
    the records whose numbers may be used: status ok and a right result.
    """

    cell: C_co
    records: tuple[AnyRecord, ...]
    ok: tuple[AnyRecord, ...] = field(default=())

    @cached_property
    def kind(self) -> Kind:
        """Which training it is: groups of another kind are no base for it."""
        return kind_of(self.cell)

    @cached_property
    def wrong(self) -> bool:
        """Whether any repeat gave a wrong result: such a group never wins anything."""
        return len(self.ok) < len(self.records) and any(is_wrong(record) for record in self.records)

    @cached_property
    def diverged(self) -> bool:
        """Whether it is wrong because its training diverged, and for no other reason."""
        wrong = [record for record in self.records if is_wrong(record)]
        return bool(wrong) and all(record.cause is Cause.DIVERGED for record in wrong)

    @cached_property
    def over_subscribed(self) -> bool:
        """Whether more ranks than cores ran: such a group carries no scaling claim."""
        return any(bool(record.details.get("over_subscribed")) for record in self.records)

    @cached_property
    def disturbed(self) -> bool:
        """Whether other processes used the machine during any repeat."""
        return any(bool(record.details.get("disturbed")) for record in self.ok)

    @cached_property
    def noisy(self) -> bool:
        """Whether more repeats were disturbed than a middle leaves out at either end: no claim on it is confirmed."""
        amount = sum(bool(record.details.get("disturbed")) for record in self.ok)
        return amount > trimmed(len(self.ok))

    @cached_property
    def check_inconclusive_from(self) -> int | None:
        """The first step from which a repeat's run can no longer be checked, or None.

        No claim on such a group is confirmed.
        """
        steps = (blind_step(record) for record in self.ok)
        return min((step for step in steps if step is not None), default=None)

    @cached_property
    def no_reference(self) -> str | None:
        """Why no repeat's steps are compared with the reference's, or None. No claim on such a group is confirmed."""
        reasons = (record.details.get("not_checkable") for record in self.ok)
        return next((reason for reason in reasons if isinstance(reason, str)), None)

    @cached_property
    def unverified(self) -> bool:
        """Whether a repeat was checked neither up to its target nor in restarts.

        Such a group is ranked nowhere: it may have stopped to train.
        """
        return any(_is_unverified(record) for record in self.ok)

    def values(self, name: str, label: str | None = None) -> list[float]:
        """Return the metric's value of every usable repeat that has one, in repeat order."""
        known = self._values.get((name, label))
        if known is None:
            values = [record.value(name, label) for record in self.ok]
            known = tuple(value for value in values if value is not None)
            self._values[name, label] = known
        return list(known)

    def counted(self, name: str, label: str | None = None) -> list[float]:
        """Return the values that a comparison counts: of undisturbed repeats, where these are enough for a verdict."""
        still = [record.value(name, label) for record in self.ok if not record.details.get("disturbed")]
        quiet = [value for value in still if value is not None]
        return quiet if len(quiet) >= MIN_RUNS else self.values(name, label)

    def by_repeat(self, name: str, label: str | None = None, *, quiet: bool = False) -> dict[int, float]:
        """Return the metric's value by repeat: a repeat has one seed in all groups. `quiet`: of undisturbed ones."""
        values = (
            (record.repeat, record.value(name, label))
            for record in self.ok
            if not (quiet and record.details.get("disturbed"))
        )
        return {repeat: value for repeat, value in values if value is not None}

    def summary(self, name: str, label: str | None = None) -> Summary | None:
        """Summarise a metric over the repeats that count (`counted`). None when no repeat has it."""
        if (name, label) not in self._summaries:
            self._summaries[name, label] = summarise(self.counted(name, label))
        return self._summaries[name, label]

    @cached_property
    def _values(self) -> dict[tuple[str, str | None], tuple[float, ...]]:
        # Every finding and section asks for the same few.
        return {}

    @cached_property
    def _summaries(self) -> dict[tuple[str, str | None], Summary | None]:
        return {}

    def detail(self, name: str) -> float | None:
        """Return a number from the first usable record's details, or None."""
        for record in self.ok:
            value = record.details.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
        return None

    @cached_property
    def global_batch(self) -> int | None:
        """Samples per step over all ranks, from the details or else the cell."""
        value = self.detail("global_batch")
        return int(value) if value is not None else self.cell.get("batch")


def is_wrong(record: AnyRecord) -> bool:
    """Whether it is known to be of no use: diverged, or another result than the reference's."""
    return record.cause is Cause.DIVERGED or leaves_reference(record)


def leaves_reference(record: AnyRecord) -> bool:
    """Whether the result is wrong: by its cause, or loss or weights outside their tolerance.

    What diverged as its reference did is not; a loss that is not finite has no ratio.
    """
    loss = record.value("equality_ratio")
    if record.cause is Cause.WRONG_RESULT or (record.cause is Cause.DIVERGED and loss is None):
        return True
    ratios = (loss, record.value("weights_equality_ratio"), record.value("restart_ratio"))
    return any(ratio is not None and ratio > 1 for ratio in ratios)


def blind_step(record: AnyRecord) -> int | None:
    """Return the step from which the run itself decides nothing about its equality, or None."""
    step = record.details.get("not_checkable_from")
    return step if isinstance(step, int) else None


def _is_unverified(record: AnyRecord) -> bool:
    step, reached = blind_step(record), record.value("steps_to_quality") or record.value("rounds_to_quality")
    if step is None or (reached is not None and reached <= step):
        return False
    return not restarts_tell(record)


def restarts_tell(record: AnyRecord) -> bool:
    """Whether there are restarts from the reference's states, and each would have shown what is wrong."""
    restarts = record.details.get("restarts") or []
    return bool(restarts) and all(restart["sharp"] for restart in restarts)


def group_records(records: Iterable[AnyRecord], stage: str | None = None) -> list[Group]:
    """Gather repeats, keyed by the cell without its repeat, in order of the cells' ids."""
    wanted = (record for record in records if stage is None or record.stage == stage)
    groups = []
    for cell, members in grouped(wanted, attrgetter("point")).items():
        members.sort(key=lambda record: (record.repeat, record.cell_id))
        usable = tuple(r for r in members if r.status is Status.OK and not is_wrong(r))
        groups.append(Group(cell=cell, records=tuple(members), ok=usable))
    return in_order(groups)


class Floors:
    """Noise floor per stage, workload and metric, from repeats of the same cell.

    Over-subscribed groups are left out, and disturbed runs, as long as any cell has two others: a run that somebody
    disturbed takes no undisturbed one out of the count.
    Without repeats of its own kind a workload takes the floor of its other kinds, then that of all
    workloads of its stage. Synthetic input is asked for by its kind, or else comes last. Within `margin` two are the
    same; `pair_noise` is that of planned pairs, once they are evaluated.
    """

    pair_noise: PairNoise | None = None

    def __init__(self, groups: Iterable[Group], margin: float = MARGIN) -> None:
        self.margin = margin
        self._sets: dict[tuple[Hashable, ...], list[Group]] = defaultdict(list)
        for group in groups:
            if not group.over_subscribed:
                sets = _sets_of(group.cell.stage, group.cell.workload, group.kind)
                for key in (*sets[: 1 if group.kind.synthetic else None], (group.cell.stage, _ANY_INPUT)):
                    self._sets[key].append(group)
        self._floor = cache(self._made)

    def get(self, stage: str, workload: str | None, name: str, kind: Kind | None = None) -> NoiseFloor | None:
        """Return the floor of one metric, or None when nothing was run twice."""
        return self._first(_sets_of(stage, workload, kind), stage, name, paired=False)

    def paired(self, stage: str, workload: str | None, name: str, kind: Kind) -> NoiseFloor | None:
        """Return the floor for `compare_paired`: without what is due to a repeat's seed."""
        return self._first(_sets_of(stage, workload, kind), stage, name, paired=True)

    def labelled(self, stage: str, name: str, label: str) -> NoiseFloor | None:
        """Return the floor of one of several numbers of a name, from all cells of the stage."""
        return self._first([(stage, _ANY_INPUT)], stage, name, label, paired=False)

    def _first(
        self, sets: Sequence[tuple[Hashable, ...]], stage: str, name: str, label: str | None = None, *, paired: bool
    ) -> NoiseFloor | None:
        """Return the floor of the first of these sets of groups that has one, before that of disturbed runs."""
        tries = [*((key, quiet) for quiet in (True, False) for key in sets), ((stage, _ANY_INPUT), False)]
        floors = (self._floor(key, quiet, name, label, paired) for key, quiet in tries)
        return next((floor for floor in floors if floor is not None), None)

    def _made(
        self, key: tuple[Hashable, ...], quiet: bool, name: str, label: str | None, paired: bool
    ) -> NoiseFloor | None:
        by_repeat = [group.by_repeat(name, label, quiet=quiet) for group in self._sets.get(key, ())]
        if paired:
            return paired_noise_floor(by_repeat, margin=self.margin)
        return noise_floor([[*values.values()] for values in by_repeat], margin=self.margin)


def _sets_of(stage: str, workload: str | None, kind: Kind | None) -> list[tuple[Hashable, ...]]:
    """Name the sets to take a floor from, the closest first."""
    return [*([(stage, workload, kind)] if kind is not None else []), (stage, workload), (stage,)]
