"""A work's claims and what became of each: what the page, its data and the index are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from transect.analysis.claims import Decided, Verdict
from transect.analysis.entries import AnyRecord, moment_of
from transect.domain.claims import Claim, Work, rule_id
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding, rule_fits
from transect.report.topics.claims.conditions import machine_of, records_of
from transect.report.topics.claims.findings import decided_claims, sentence

OWN_CODE = "This is a replication: transect's own code, not the authors'."


def minutes_of(records: Iterable[AnyRecord]) -> float:
    """Return how long cells took, one after another."""
    spans = ((moment_of(record.started), moment_of(record.ended)) for record in records)
    return sum((end - start).total_seconds() for start, end in spans if start and end and end > start) / 60


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The results of one study, read as its report reads them.

    `fixed` says of each rule since when it has stood and at which commit; None where nothing tells. `crate`: the crate of
    its folder, if one lies there; `doi`: what that names as its identifier, if anything.
    """

    study: str
    folder: Path
    context: Context
    findings: Sequence[Finding]
    fixed: Mapping[str, Mapping[str, Any]] | None
    crate: Path | None = None
    doi: str = ""

    @cached_property
    def decided(self) -> dict[str, Decided]:
        """Each claim of its works by its rule's name, as this study decides it: nothing else is asked here."""
        return {rule_id(made.work, made.claim): made for made in decided_claims(self.context, asked=True)}

    @property
    def minutes(self) -> float:
        """How long its cells took, one after another."""
        return minutes_of(self.context.records)


@dataclass(frozen=True, kw_only=True)
class Held:
    """A claim and what became of it, by the results of one study; of no study where none has cells of it."""

    decided: Decided
    ran: Ran | None = None

    @property
    def claim(self) -> Claim:
        """The claim."""
        return self.decided.claim

    @property
    def records(self) -> list[AnyRecord]:
        """The records that its verdict rests on."""
        return records_of(self.decided)

    @property
    def fixed(self) -> Mapping[str, Any]:
        """Since when its rule has stood, and at which commit; nothing where nobody noted that."""
        known = (self.ran.fixed if self.ran else None) or {}
        return known.get(rule_id(self.decided.work, self.claim), {})

    @property
    def rewritten(self) -> str:
        """Since when another rule of the same name had stood before these cells ran; empty where there was none."""
        if not self.decided.edited or self.ran is None:
            return ""
        other = rule_id(self.decided.work, self.claim).rpartition("/")[0] + "/"
        known = [str(entry.get("since")) for name, entry in (self.ran.fixed or {}).items() if name.startswith(other)]
        return min((since for since in known if since != str(self.fixed.get("since"))), default="")

    @property
    def why_apart(self) -> list[Finding]:
        """The findings that its file names as what may explain a difference."""
        findings = self.ran.findings if self.ran else ()
        return [finding for finding in findings if any(rule_fits(finding.rule, rule) for rule in self.claim.why_apart)]


def held(work: Work, every: Sequence[Ran]) -> list[Held]:
    """Hold each claim beside the first study that tells of it, in the order in which its file names them."""
    return [_held(work, claim, every) for claim in work.claims]


def _held(work: Work, claim: Claim, every: Sequence[Ran]) -> Held:
    wanted = list(dict.fromkeys(measured.study for measured in claim.measured))
    if claim.rule is None:
        return Held(
            decided=Decided(work=work, claim=claim, verdict=Verdict.NOT_COMPARABLE, reason=claim.not_comparable)
        )
    without, reasons = None, []
    found: list[Held] = []
    for study in wanted:
        ran = next((ran for ran in every if ran.study == study), None)
        if ran is None:
            reasons.append(f"no results of the study {study} here")
            continue
        made = ran.decided[rule_id(work, claim)]
        if made.points:
            found.append(Held(decided=made, ran=ran))
        without = without or Held(decided=made, ran=ran)
        reasons.append(made.reason)
    if found:
        return next((one for one in found if one.decided.verdict is not Verdict.OPEN), found[0])
    reason = "; ".join(dict.fromkeys(reasons)) or "no study measures it"
    made = Decided(work=work, claim=claim, verdict=Verdict.OPEN, reason=reason)
    return Held(decided=made, ran=without.ran if without else None)


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """The same claims by the results of another machine; `letter` names it in tables."""

    letter: str
    folders: Sequence[Path]
    claims: Sequence[Held]
    runs: Sequence[Ran]

    @property
    def machine(self) -> dict[str, str]:
        """What its records say of the machine."""
        return machine_of(record for ran in self.runs for record in ran.context.records)

    @property
    def day(self) -> str:
        """The day of its last record."""
        return _day(self.runs)


def _day(runs: Iterable[Ran]) -> str:
    return max((record.ended for ran in runs for record in ran.context.records), default="")[:10]


@dataclass(frozen=True, kw_only=True)
class Replication:
    """A work, what became of its claims, and what was run for it.

    `troubles` says of each study that gives nothing why not; `again` is what follows `transect replicate`. `times`: what the
    head of a study's file says of how long it takes, of those that have not run.
    """

    name: str
    work: Work
    claims: Sequence[Held]
    runs: Sequence[Ran] = ()
    troubles: Sequence[tuple[str, str]] = ()
    elsewhere: Sequence[Elsewhere] = ()
    again: str = ""
    times: Mapping[str, str] = field(default_factory=dict)
    folder: Path = field(default=Path())

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have each verdict, in the order of the verdicts."""
        return counts_of(held.decided.verdict for held in self.claims)

    @property
    def said(self) -> str:
        """The top line."""
        return sentence(self.counts)

    @property
    def machine(self) -> dict[str, str]:
        """What the records say of this machine."""
        return machine_of(record for ran in self.runs for record in ran.context.records)

    @property
    def day(self) -> str:
        """The day of the last record."""
        return _day(self.runs)

    @property
    def minutes(self) -> float:
        """How long the cells of its studies took, one after another."""
        return sum(ran.minutes for ran in self.runs)

    @property
    def any_decided(self) -> bool:
        """Whether anything could be told of any claim."""
        return any(held.decided.verdict not in (Verdict.OPEN, Verdict.NOT_COMPARABLE) for held in self.claims)


def counts_of(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Count verdicts, in their order."""
    found = Counter(str(verdict) for verdict in verdicts)
    return {str(verdict): found[str(verdict)] for verdict in Verdict}
