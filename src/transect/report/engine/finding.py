"""The type of a finding, and what several kinds of finding share."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.contrasts import Contrast
from transect.analysis.groups import Group
from transect.analysis.serving import run_includes
from transect.domain.record import Status
from transect.report.engine.decision import Decision
from transect.report.engine.facets import Facets, facets_of
from transect.report.engine.text import count
from transect.stats.comparisons import Confidence
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
    down, e.g. `on cpu, batch 1`. `contrasts` are those that the claim rests on, and `tests` its further tests against chance. `alarm`: results are wrong, or cannot be trusted. `decision`: its entry in the decision table. `groups` are
    those that the claim is about; without any it is about all cells of its subject. `numbers` are what those that were
    compared reach, by what decided, where that is not the median of the column's metric. `topic` tells the rules of one kind
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
    contrasts: tuple[Contrast, ...] = ()
    tests: tuple[Chance, ...] = ()
    alarm: bool = False
    decision: Decision | None = None
    groups: tuple[Group, ...] = ()
    numbers: tuple[tuple[Group, float], ...] = ()
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
    """Return the median of a metric over the repeats that count, as comparisons take it, or None."""
    summary = group.summary(name)
    return summary.median if summary else None


def inside_run(groups: Iterable[Group]) -> str:
    """Say which runtime does more inside of Run than the call; empty where none does."""
    held = {str(group.cell.get("runtime")): run_includes(group) for group in groups}
    return names([f"{name}'s Run includes {names(parts, 9)}" for name, parts in sorted(held.items()) if parts], 9)


def limited_confidence(confidence: Confidence, *groups: Group | None) -> Confidence:
    """Return the confidence of a claim on these groups: none is confirmed that was checked neither to its end nor in restarts."""
    blind = any(group is not None and (group.unverified or group.no_reference is not None) for group in groups)
    return Confidence.PROVISIONAL if blind and confidence is Confidence.CONFIRMED else confidence


def lowest_confidence(every: Iterable[Confidence]) -> Confidence:
    """Return the lowest of several; confirmed without any."""
    known = set(every)
    order = (Confidence.INCONCLUSIVE, Confidence.PROVISIONAL, Confidence.CONFIRMED)
    return next((level for level in order if level in known), Confidence.CONFIRMED)


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
