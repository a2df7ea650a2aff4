"""The confidence of a study's findings: by the conditions of their runs, and beside all other comparisons.

A study that makes forty comparisons finds two differences at 5 % where there are none. So each finding names the
contrasts and tests that it rests on, and Holm's correction runs over all that the study asks for. What nobody asked for is
at most likely, and so is all that rests on cells that are still to come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from transect.analysis.contrasts import Contrast, pending_of
from transect.report.engine.context import Context
from transect.report.engine.finding import HEADINGS, Finding, joined
from transect.report.engine.text import count, percent
from transect.stats import verdicts
from transect.stats.comparisons import Comparison, Confidence
from transect.stats.verdicts import LEVEL, Answer, Chance

_Member = Contrast | Chance


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How the comparisons of a study end: planned `pairs` (and what was compared without a plan), `rivals` of a best that
    no single pair sets beside it, and other `tests`, such as for a shift over seeds.

    `different` and `same` are confirmed after correction; `provisional` ones were decided, but in too few runs, on a
    disturbed machine, as one of too many, or without being asked for; `inconclusive` is the rest, with the planned pairs
    that are `lacking` a result on a side. `asked` counts those alone that answer the study's questions.
    """

    comparisons: int
    pairs: int
    rivals: int
    tests: int
    different: int
    same: int
    provisional: int
    inconclusive: int
    lacking: int = 0
    asked: Tally | None = None


def same_within(comparison: Comparison) -> str:
    """Write that two groups are the same, as shown: `the same within 5 %`."""
    return f"the same within {percent(comparison.margin)}"


class _Family:
    """All that is compared or tested, each once, with its probability beside the others that are asked for."""

    def __init__(self, findings: Iterable[Finding], contrasts: Iterable[Contrast], asks: Callable[[str], bool]) -> None:
        # Each with whether a question asks for it, and whether it may be sure.
        self.members: dict[_Member, tuple[bool, bool]] = {made: (made.asked, True) for made in contrasts}
        for finding in findings:
            asked, sure = asks(finding.rule), finding.confidence is Confidence.CONFIRMED
            for made in finding.contrasts:
                self.members.setdefault(made, (made.asked, True))
            asked &= not finding.contrasts or any(made.asked for made in finding.contrasts)
            for test in finding.tests:
                self.members.setdefault(test, (asked, sure))
        tested = [(member, of) for member, (asked, _) in self.members.items() if asked and (of := _tested(member))]
        adjusted = verdicts.corrected([of for _, of in tested], [member.n_comparisons for member, _ in tested])
        self.p = dict(zip((member for member, _ in tested), adjusted, strict=True))

    def tally(self, lacking: int, *, asked: bool = False) -> Tally:
        """Count how they end, with pairs that are `lacking` a side; `asked`: those that a question asks for."""
        counted = {member: sure for member, (wanted, sure) in self.members.items() if wanted or not asked}
        ends = Counter(self._end(member, sure) for member, sure in counted.items())
        kinds = Counter("pairs" if isinstance(m, Contrast) else "rivals" if m.rival else "tests" for m in counted)
        return Tally(
            comparisons=ends.total() + lacking,
            pairs=kinds["pairs"] + lacking,
            rivals=kinds["rivals"],
            tests=kinds["tests"],
            different=ends["different"],
            same=ends["same"],
            provisional=ends["provisional"],
            inconclusive=ends["inconclusive"] + lacking,
            lacking=lacking,
        )

    def _end(self, member: _Member, sure: bool) -> str:
        answer = _answer(member)
        if answer is Answer.OPEN:
            return "inconclusive"
        sound = sure if isinstance(member, Chance) else member.confidence is Confidence.CONFIRMED
        if not sound or self.p.get(member, 1.0) > LEVEL:
            return "provisional"
        return "same" if answer is Answer.SAME else "different"


def _tested(member: _Member) -> verdicts.Decision | Chance | None:
    """Return what has the probability of a comparison; None where none is known, or it supports no claim."""
    if isinstance(member, Chance):
        return member
    return None if isinstance(member, Contrast) and member.barred else member.decision


def _answer(member: _Member) -> Answer:
    if isinstance(member, Contrast):
        return member.answer
    return (Answer.SAME if member.same else Answer.DIFFERENT) if member.claimed else Answer.OPEN


def corrected(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """Return the findings, none confirmed that nobody asked for, that may be chance, or that waits for cells."""
    family = _Family(findings, context.contrasts, context.asks)
    return [_complete(_held(finding, family.members, family.p), context) for finding in findings]


def _held(
    finding: Finding, members: Mapping[_Member, tuple[bool, bool]], corrected_p: Mapping[_Member, float]
) -> Finding:
    every: list[_Member] = [*finding.contrasts, *finding.tests]
    # What is inconclusive claims nothing that could be chance.
    claimed = [member for member in every if _answer(member) is not Answer.OPEN]
    if finding.confidence is not Confidence.CONFIRMED or not claimed:
        return finding
    if not all(members[member][0] for member in claimed):
        return finding if finding.alarm else _provisional(finding, "no question of the study asks for it")
    if doubt := next((made.doubt for made in claimed if isinstance(made, Contrast) and made.doubt), ""):
        return _provisional(finding, doubt)
    worst = max(corrected_p.get(member, 0.0) for member in claimed)
    if worst <= LEVEL:
        return finding
    amount = count(len(corrected_p), "comparison")
    return _provisional(finding, f"as one of {amount} p = {worst:.2g} (Holm), which may be chance")


def _complete(finding: Finding, context: Context) -> Finding:
    """Return a finding, not confirmed as long as cells that it is about are still to come, or were killed."""
    if finding.confidence is not Confidence.CONFIRMED or finding.alarm or finding.subject == "study":
        return finding
    workload = None if finding.subject in HEADINGS else finding.subject
    stages = {*finding.stages, *(made.group.cell.stage for made in finding.contrasts)}
    waiting = pending_of(context.pending, stages, workload)
    if waiting:
        return _provisional(finding, f"{count(waiting, 'run')} of it still to come, or not readable")
    killed = context.contrasts.killed(finding.rule, workload)
    return _provisional(finding, f"{killed} was killed, so nothing is compared with it") if killed else finding


def _provisional(finding: Finding, doubt: str) -> Finding:
    return replace(finding, confidence=Confidence.PROVISIONAL, evidence=joined(finding.evidence, doubt))


def tally_of(findings: Sequence[Finding], context: Context) -> Tally:
    """Count how the comparisons and tests of a study end, each once; those that its questions ask for apart too."""
    family = _Family(findings, context.contrasts, context.asks)
    lacking = len({frozenset(pair.points) for pair in context.contrasts.lacking})
    whole = family.tally(lacking)
    asks = any(question.answered_by for question in context.questions)
    return replace(whole, asked=family.tally(lacking, asked=True)) if asks else whole
