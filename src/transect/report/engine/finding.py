"""The type of a finding, and what several kinds of finding share."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from transect.analysis.groups import Group
from transect.analysis.serving import run_includes
from transect.analysis.side_by_side import under
from transect.domain.metrics import Direction, metric
from transect.domain.record import Status
from transect.report.engine.decision import Decision
from transect.report.engine.facets import Facets, facets_of
from transect.report.engine.text import count, percent
from transect.stats.comparisons import Comparison, Confidence, Verdict, compare, compare_paired
from transect.stats.noise import middle
from transect.stats.samples import NoiseFloor
from transect.stats.verdicts import Chance

_MACHINE = ("host", "cpu_model", "cores", "memory_bytes", "kernel", "gpus", "git")


# Subjects other than a workload, and what stands above their findings, in this order.
HEADINGS = {
    "doubts": "Doubts",
    "claims": "Published claims",
    "equality": "Right results",
    "export": "Exports",
    "conformance": "Conformance",
    "study": "This study",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One sentence of the report about `subject`: a workload, or a key of `HEADINGS`.

    `claim` is that sentence, as it follows a colon; `named`: it begins with a name, whose first letter stays as it is
    at the start of a sentence too. `short` replaces a claim that is too long for a list. `scope` narrows the subject
    down, e.g. `on cpu, batch 1`. `comparisons` are those that the claim rests on, and `tests` its further tests against
    chance. `alarm`: results are wrong, or cannot be trusted. `decision`: its entry in the decision table. `groups` are
    those that the claim is about; without any it is about all cells of its subject. `topic` tells the rules of one kind
    apart where it decides several things. `rule` names what made it, `section` where the report shows more: its
    `FindingMaker` sets both.
    """

    subject: str
    claim: str
    evidence: str
    confidence: Confidence
    kind: str
    scope: str = ""
    named: bool = False
    comparisons: tuple[Comparison, ...] = ()
    tests: tuple[Chance, ...] = ()
    alarm: bool = False
    decision: Decision | None = None
    groups: tuple[Group, ...] = ()
    topic: str = ""
    short: str = ""
    rule: str = ""
    section: str = ""
    stages: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The sentence where the subject stands above it already."""
        if self.scope:
            return f"{self.scope[:1].upper()}{self.scope[1:]}: {self.claim}"
        return self.claim if self.named else self.claim[:1].upper() + self.claim[1:]

    @property
    def facets(self) -> Facets:
        """What the page's filter finds it by: its groups, or else all cells of its subject."""
        if self.groups or self.subject in HEADINGS:
            return facets_of(self.groups)
        return Facets(workload=(self.subject,))

    @property
    def brief(self) -> str:
        """What it says in a few words, for a list of findings in one sentence."""
        brief = self.short or (self.decision.brief if self.decision else self.claim)
        return brief.strip().rstrip(".")

    @property
    def text(self) -> str:
        """The sentence with its subject, as it stands alone."""
        if self.subject in HEADINGS:
            return self.headline
        return f"{self.subject} {self.scope}".strip() + f": {self.claim}"


def joined(*evidence: str | None) -> str:
    """Join pieces of evidence, leaving out those that are not there."""
    return "; ".join(piece for piece in evidence if piece)


def median(group: Group, name: str) -> float | None:
    """Return the median of a metric, or None."""
    summary = group.summary(name)
    return summary.median if summary else None


def floor_text(floor: NoiseFloor | None) -> str:
    """Write a noise floor, or that there is none."""
    return f"noise floor {percent(floor.relative, 1)}" if floor else "no noise floor known"


def inside_run(groups: Iterable[Group]) -> str:
    """Say which runtime does more inside of Run than the call; empty where none does."""
    held = {str(group.cell.get("runtime")): run_includes(group) for group in groups}
    return names([f"{name}'s Run includes {names(parts, 9)}" for name, parts in sorted(held.items()) if parts], 9)


def limited_confidence(confidence: Confidence, *groups: Group | None) -> Confidence:
    """Return the confidence of a claim on these groups: none is confirmed whose check goes blind, or that has none."""
    blind = any(
        group is not None and (group.check_inconclusive_from is not None or group.no_reference is not None)
        for group in groups
    )
    return Confidence.PROVISIONAL if blind and confidence is Confidence.CONFIRMED else confidence


@dataclass(frozen=True, kw_only=True, slots=True)
class Race:
    """Groups ranked by one metric. `tied` holds those not distinguishable from the best.

    `values` are those of the best that it was ranked by, and `comparisons` those with all others.
    `ranked` holds all, the best first.
    """

    best: Group
    values: tuple[float, ...]
    tied: tuple[Group, ...]
    runner_up: Group | None
    comparison: Comparison | None
    comparisons: tuple[Comparison, ...] = ()
    ranked: tuple[Group, ...] = ()

    @property
    def ties(self) -> tuple[Comparison, ...]:
        """The comparisons with those that the best is not shown to beat."""
        return tuple(comparison for comparison in self.comparisons if comparison.verdict is not Verdict.BETTER)

    @property
    def confidence(self) -> Confidence:
        """The confidence of the order: the lowest of its comparisons.

        Inconclusive too where seed by seed the first is the worse of two.
        """
        if any(comparison.verdict is Verdict.WORSE for comparison in self.comparisons):
            return Confidence.INCONCLUSIVE
        return lowest_confidence(comparison.confidence for comparison in self.comparisons)


def lowest_confidence(every: Iterable[Confidence]) -> Confidence:
    """Return the lowest of several; confirmed without any."""
    known = set(every)
    order = (Confidence.INCONCLUSIVE, Confidence.PROVISIONAL, Confidence.CONFIRMED)
    return next((level for level in order if level in known), Confidence.CONFIRMED)


def race(
    groups: Sequence[Group],
    name: str,
    floor: NoiseFloor | None,
    *,
    paired: bool = False,
    of: Callable[[Group], list[float]] | None = None,
) -> Race | None:
    """Rank by what is compared; nothing wins over a group that it cannot be told apart from.

    `paired`: by the repeats that all groups have, and compared seed by seed; the floor is then
    that of `Floors.paired`. Groups without a common repeat are compared as they are, without it.
    `of` gives values that stand for the metric, and are not paired.

    `runner_up` is the nearest group that is really worse, or the nearest tied one.
    None when no group has the metric.
    """
    direction = metric(name).direction
    sign = -1 if direction is Direction.HIGHER else 1
    having = [group for group in groups if (of(group) if of else group.values(name))]
    by_repeat = {id(group): group.by_repeat(name) for group in having}
    common = set[int]().union(*by_repeat.values()).intersection(*by_repeat.values())
    if paired and not common:
        # Their seeds differ, and the floor knows nothing of that.
        paired, floor = False, None

    def values(group: Group) -> list[float]:
        if paired:
            return [value for n, value in by_repeat[id(group)].items() if n in common]
        return of(group) if of else group.values(name)

    def order(group: Group) -> tuple[float, str]:
        return sign * middle(values(group)), group.cell.id

    ranked = sorted(having, key=order)
    if not ranked:
        return None
    best, others = ranked[0], ranked[1:]

    def against(rival: Group) -> Comparison | None:
        if paired:
            mine, theirs = by_repeat[id(best)], by_repeat[id(rival)]
            result = compare_paired(mine, theirs, direction=direction, floor=floor)
        else:
            result = compare(values(best), values(rival), direction=direction, floor=floor)
        return under(replace(result, n_candidates=len(ranked)), best, rival) if result else None

    against_best = [(rival, against(rival)) for rival in others]
    tied = [pair for pair in against_best if pair[1] is not None and pair[1].verdict is not Verdict.BETTER]
    runner_up, comparison = next(iter(tied or against_best), (None, None))
    return Race(
        best=best,
        values=tuple(values(best)),
        tied=tuple(group for group, _ in tied),
        runner_up=runner_up,
        comparison=comparison,
        comparisons=tuple(comparison for _, comparison in against_best if comparison is not None),
        ranked=tuple(ranked),
    )


def names(items: Sequence[str], limit: int = 3) -> str:
    """Join names: `a, b and 2 more`."""
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1] if items else ""]))


def lost_runs(group: Group) -> str:
    """Say which repeats of a group gave no number: what is left may be the better part; empty with all there."""
    lost = [record for record in group.records if record.status is not Status.OK]
    if not lost or not group.ok:
        return ""
    causes = dict.fromkeys(record.cause.value for record in lost if record.cause)
    why = f" ({names(list(causes), 9)})" if causes else ""
    return f"{len(lost)} of its {count(len(group.records), 'run')} gave no result{why}"


def _facts(group: Group, key: str) -> set[str]:
    return {repr(record.provenance.get(key)) for record in group.ok}


def machine_differences(a: Group, b: Group) -> list[str]:
    """Name the facts of machine and code in which two compared groups differ."""
    differing = []
    for key in _MACHINE:
        if _facts(a, key) != _facts(b, key):
            differing.append(key)
    return differing


def rule_fits(rule: str, named: str) -> bool:
    """Whether a rule is the one that is named, where `*` stands for any part of a name.

    >>> rule_fits("serving.runtime", "serving.*"), rule_fits("serving.runtime", "serving")
    (True, False)
    """
    return fnmatch.fnmatchcase(rule, named)
