"""Which of several systems is faster at a benchmark: runs that logs tell, under the same settings alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.entries import AnyRecord
from transect.analysis.groups import Group, group_records, grouped
from transect.analysis.log_runs import DATED, SETTINGS_UNKNOWN, LogCell, log_records, settings_unknown
from transect.domain.metrics import Direction, metric
from transect.domain.until import MARGIN
from transect.stats.comparisons import compare
from transect.stats.noise import middle
from transect.stats.samples import noise_floor

# Days on which a system has to have run a benchmark: repeats of one say nothing of another.
_DAYS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemRace:
    """One number of a benchmark on systems that ran it alike: the best by what is compared, and each other beside it."""

    cell: LogCell
    name: str
    label: str
    best: Group
    others: Mapping[str, Contrast]

    @property
    def systems(self) -> tuple[str, ...]:
        """All that have the number, sorted."""
        return tuple(sorted((str(self.best.cell.get("system")), *self.others)))

    @property
    def winner(self) -> str | None:
        """The system that is better than every other; None where one cannot be told from the best."""
        won = all(pair.better is self.best for pair in self.others.values())
        return str(self.best.cell.get("system")) if won else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmatched:
    """A benchmark that several systems ran, and no two alike: the settings in which they differ."""

    benchmark: str
    variant: str
    systems: tuple[str, ...]
    settings: tuple[str, ...]


def system_races(
    records: Iterable[AnyRecord], *, margin: float = MARGIN, asked: bool = True
) -> tuple[list[SystemRace], list[Unmatched]]:
    """Compare systems benchmark by benchmark, with the noise between runs of one system.

    Logs that name no system are left out, and numbers that are neither times, rates nor a score.
    """
    every: list[Group] = [group for group in group_records(log_records(records)) if group.cell.get("system")]
    races: list[SystemRace] = []
    unmatched: list[Unmatched] = []
    kinds = grouped(every, lambda group: (group.cell.get("benchmark"), group.cell.get("variant")))
    for (benchmark, variant), groups in kinds.items():
        usable = [group for group in groups if group.ok]
        alike = grouped(usable, lambda group: group.cell.apart_from("system"))
        together = [members for members in alike.values() if len(members) > 1]
        systems = tuple(sorted({str(group.cell.get("system")) for group in usable}))
        if not together and len(systems) > 1:
            differing = _differing(usable)
            unmatched.append(Unmatched(benchmark=benchmark, variant=variant, systems=systems, settings=differing))
        for members in together:
            races += _races(members, usable, margin, asked)
    return races, unmatched


def _differing(groups: Sequence[Group]) -> tuple[str, ...]:
    settings = [dict(group.cell.get("settings")) for group in groups]
    names = sorted({name for setting in settings for name in setting})
    return tuple(name for name in names if len({setting.get(name) for setting in settings}) > 1)


def _races(members: Sequence[Group], of_kind: Sequence[Group], margin: float, asked: bool) -> Iterable[SystemRace]:
    series = dict.fromkeys(
        (number.name, number.label or "")
        for group in members
        for record in group.ok
        for number in record.metrics
        if _races_in(number.name)
    )
    for name, label in series:
        values = {group.cell.get("system"): group.values(name, label) for group in members}
        having = [group for group in members if values[group.cell.get("system")]]
        if len(having) < 2:
            continue
        direction = metric(name).direction
        sign = -1 if direction is Direction.HIGHER else 1
        best = min(having, key=lambda group: sign * middle(values[group.cell.get("system")]))
        floor = noise_floor((group.values(name, label) for group in of_kind), margin=margin)
        others = {}
        for group in having:
            if group is best:
                continue
            comparison = compare(best.values(name, label), group.values(name, label), direction=direction, floor=floor)
            if comparison is None:
                continue
            others[str(group.cell.get("system"))] = Contrast(
                group=best,
                base=group,
                varies="system",
                metric=name,
                by="",
                pairs=min(comparison.a.count, comparison.b.count),
                left_out=0,
                quiet=True,
                asked=asked,
                comparison=comparison,
                candidates=len(having),
                doubt=(SETTINGS_UNKNOWN if settings_unknown(group.cell) else _few_days(best, group))
                or comparison.doubt,
            )
        cell = best.cell
        assert isinstance(cell, LogCell)
        yield SystemRace(cell=cell.changed(system=""), name=name, label=label, best=best, others=others)


def _few_days(*groups: Group) -> str:
    """Say why runs do not tell how a system is from day to day, or nothing."""
    days = [{record.started[:10] for record in group.ok if record.details.get(DATED)} for group in groups]
    if min(map(len, days)) >= _DAYS:
        return ""
    amounts = " and ".join(str(len(dates)) for dates in days)
    return f"runs of {amounts} days that logs tell: from {_DAYS} on they say how a system is from day to day"


def _races_in(name: str) -> bool:
    """Whether a metric says how fast a system is."""
    known = metric(name)
    timed = known.unit == "s" or known.unit.endswith("/s") or name == "io500_score"
    return timed and known.direction is not Direction.NEUTRAL
