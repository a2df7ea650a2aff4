"""Which of several systems is faster at a benchmark: runs that logs tell, under the same settings alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from transect.analysis.contrast import Contrast
from transect.analysis.groups import Group, group_records, grouped
from transect.analysis.log_runs import (
    DATED,
    SETTINGS_UNKNOWN,
    LogCell,
    log_records,
    settings_in_words,
    settings_unknown,
)
from transect.domain.metrics import Direction, metric
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, lost_runs, lowest_confidence, names
from transect.report.engine.text import clean, clipped, count
from transect.stats.comparisons import Confidence, compare
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


def system_findings(context: Context) -> list[Finding]:
    """Say for each benchmark and choice of settings which system is faster, and what is not compared.

    With the noise between runs of one system. Logs that name no system are left out, and numbers that are neither times,
    rates nor a score.
    """
    every: list[Group] = [group for group in group_records(log_records(context.records)) if group.cell.get("system")]
    races: list[SystemRace] = []
    unlike: list[Finding] = []
    kinds = grouped(every, lambda group: (group.cell.get("benchmark"), group.cell.get("variant")))
    for (benchmark, variant), groups in kinds.items():
        usable = [group for group in groups if group.ok]
        alike = grouped(usable, lambda group: group.cell.apart_from("system"))
        together = [members for members in alike.values() if len(members) > 1]
        if not together and len({group.cell.get("system") for group in usable}) > 1:
            unlike.append(_unlike(f"{benchmark} {variant}", usable))
        for members in together:
            races += _races(members, usable, context.analysis_plan.margin, context.asks("system"))
    # A number that one of the systems lacks says nothing of it.
    won = grouped(races, lambda race: (race.cell, race.systems))
    return [*(_of(cell, systems, group) for (cell, systems), group in won.items()), *unlike]


def _unlike(named: str, groups: Sequence[Group]) -> Finding:
    """Say of a benchmark that several systems ran, and no two alike, in which settings they differ."""
    systems = sorted({clean(str(group.cell.get("system"))) for group in groups})
    settings = [dict(group.cell.get("settings")) for group in groups]
    every = sorted({name for setting in settings for name in setting})
    differing = [clean(name) for name in every if len({setting.get(name) for setting in settings}) > 1]
    return Finding(
        subject="study",
        kind="system",
        confidence=Confidence.INCONCLUSIVE,
        claim=f"{names(systems)} ran {clean(named.strip())} under no common settings: they are not compared.",
        evidence=f"what differs: {names(differing, 6) or 'nothing that the logs tell'}; run it alike on each",
    )


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


_SHOWN = 3
_CLIP = 160


def _of(cell: LogCell, systems: Sequence[str], races: Sequence[SystemRace]) -> Finding:
    named = clean(f"{cell.benchmark} {cell.variant}".strip())
    every = names([clean(system) for system in systems])
    winners = {race.winner for race in races}
    pairs = [pair for race in races for pair in race.others.values()]
    factors = sorted(pair.times.value for pair in pairs if pair.better is pair.group)
    amount = count(len(races), "number")
    confidence = lowest_confidence(pair.confidence for pair in pairs)
    if len(winners) == 1 and None not in winners:
        best = str(next(iter(winners)))
        others = [clean(system) for system in systems if system != best]
        times = " to ".join(dict.fromkeys(f"{factor:.3g}" for factor in (factors[0], factors[-1])))
        claim = f"{clean(best)} is {times} times as fast as {names(others)} in {amount} of {named}"
    else:
        # Some of it may be decided: what is not keeps the whole inconclusive.
        each = grouped(races, lambda race: race.winner)
        wins = [f"{clean(name)} in {len(won)}" for name, won in sorted((str(k), v) for k, v in each.items() if k)]
        left = len(each.get(None, ()))
        wins += [f"not known in {left}"] if left else []
        claim = (
            f"which of {every} is faster depends on the number of {named}: {', '.join(wins)}"
            if len(wins) > 1
            else f"which of {every} is faster at {named} is not known"
        )
        confidence = Confidence.INCONCLUSIVE
    settings = clipped(settings_in_words(cell.settings), _CLIP)
    evidence = joined(
        f"runs that logs tell under the same settings ({settings})" if settings else SETTINGS_UNKNOWN,
        *(
            f"{race.name.replace('_', ' ')} {clean(race.label)}: {clean(str(race.best.cell.get('system')))} beside {clean(name)}, {pair.reason}"
            for race in races[:_SHOWN]
            for name, pair in race.others.items()
        ),
        count(len(races) - _SHOWN, "more number") if len(races) > _SHOWN else "",
        *dict.fromkeys(
            f"{clean(str(race.best.cell.get('system')))}: {lost}" for race in races if (lost := lost_runs(race.best))
        ),
        "what other nodes of a system would say is in no log",
    )
    return Finding(
        subject="study",
        claim=claim + ".",
        evidence=evidence,
        confidence=confidence,
        kind="system",
        named=True,
        contrasts=tuple(pairs),
    )
