"""Findings on systems whose logs were read: which is faster, where they ran a benchmark alike."""

from __future__ import annotations

from collections.abc import Sequence

from transect.analysis.groups import grouped
from transect.analysis.log_runs import SETTINGS_UNKNOWN, LogCell, settings_in_words
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, joined, lost_runs, lowest_confidence, names
from transect.report.engine.text import clean, clipped, count
from transect.report.topics.hardware.races import SystemRace, Unmatched, system_races
from transect.stats.comparisons import Confidence

_SHOWN = 3
_CLIP = 160


def system_findings(context: Context) -> list[Finding]:
    """Say for each benchmark and choice of settings which system is faster, and what is not compared."""
    races, unmatched = system_races(context.records, margin=context.analysis_plan.margin, asked=context.asks("system"))
    # A number that one of the systems lacks says nothing of it.
    alike = grouped(races, lambda race: (race.cell, race.systems))
    found = [_of(cell, systems, group) for (cell, systems), group in alike.items()]
    return [*found, *map(_unlike, unmatched)]


def _named(cell: LogCell) -> str:
    return clean(f"{cell.benchmark} {cell.variant}".strip())


def _of(cell: LogCell, systems: Sequence[str], races: Sequence[SystemRace]) -> Finding:
    winners = {race.winner for race in races}
    pairs = [pair for race in races for pair in race.others.values()]
    factors = sorted(pair.times.value for pair in pairs if pair.better is pair.group)
    amount = count(len(races), "number")
    confidence = lowest_confidence(pair.confidence for pair in pairs)
    if len(winners) == 1 and None not in winners:
        best = str(next(iter(winners)))
        others = [clean(system) for system in systems if system != best]
        times = " to ".join(dict.fromkeys(f"{factor:.3g}" for factor in (factors[0], factors[-1])))
        claim = f"{clean(best)} is {times} times as fast as {names(others)} in {amount} of {_named(cell)}"
    else:
        # Some of it may be decided: what is not keeps the whole inconclusive.
        each = grouped(races, lambda race: race.winner)
        wins = [f"{clean(name)} in {len(won)}" for name, won in sorted((str(k), v) for k, v in each.items() if k)]
        left = len(each.get(None, ()))
        wins += [f"not known in {left}"] if left else []
        claim = (
            f"which of {names([clean(system) for system in systems])} is faster depends on the number of {_named(cell)}: {', '.join(wins)}"
            if len(wins) > 1
            else f"which of {names([clean(system) for system in systems])} is faster at {_named(cell)} is not known"
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


def _unlike(unmatched: Unmatched) -> Finding:
    systems = names([clean(name) for name in unmatched.systems])
    named = clean(f"{unmatched.benchmark} {unmatched.variant}".strip())
    differing = names([clean(name) for name in unmatched.settings], 6)
    return Finding(
        subject="study",
        kind="system",
        confidence=Confidence.INCONCLUSIVE,
        claim=f"{systems} ran {named} under no common settings: they are not compared.",
        evidence=f"what differs: {differing or 'nothing that the logs tell'}; run it alike on each",
    )
