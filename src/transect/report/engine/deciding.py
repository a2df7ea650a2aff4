"""The confidence of a study's findings: by the conditions of their runs, and after correction for all comparisons.

A study that makes forty comparisons finds two differences at 5 % where there are none. So each finding names the
comparisons that it rests on, and Holm's correction runs over those of all findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from transect.domain.study import Question
from transect.report.engine.finding import Finding, joined, rule_fits
from transect.report.engine.text import count, percent
from transect.stats import verdicts
from transect.stats.comparisons import Comparison, Confidence, Verdict
from transect.stats.verdicts import LEVEL


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How the comparisons of a study's findings end.

    `different` and `same` are confirmed after correction; `provisional` ones were decided, but in too few
    runs, on a disturbed machine, or as one of too many; `inconclusive` is the rest. `asked` counts those alone that
    answer the study's questions.
    """

    comparisons: int
    different: int
    same: int
    provisional: int
    inconclusive: int
    asked: Tally | None = None


def same_within(comparison: Comparison) -> str:
    """Write that two groups are the same, as shown: `the same within 5 %`."""
    return f"the same within {percent(comparison.margin)}"


def _family(findings: Iterable[Finding]) -> dict[Comparison | verdicts.Chance, float]:
    """Return the corrected probability of every comparison and test that any finding rests on."""
    of_all = list(findings)
    every = dict.fromkeys(comparison for finding in of_all for comparison in finding.comparisons)
    tests = dict.fromkeys(test for finding in of_all for test in finding.tests)
    pairs = [(comparison, tested) for comparison in every if (tested := _tested(comparison)) is not None]
    known: list[Comparison | verdicts.Chance] = [*(comparison for comparison, _ in pairs), *tests]
    probable = [*(tested for _, tested in pairs), *tests]
    n_comparisons = [*(test.n_comparisons for test, _ in pairs), *(test.n_comparisons for test in tests)]
    return dict(zip(known, verdicts.corrected(probable, n_comparisons), strict=True))


def _tested(comparison: Comparison) -> verdicts.Decision | verdicts.Chance | None:
    """Return what has the probability of a comparison: of ranks, where values have no logarithm."""
    if comparison.decision is not None:
        return comparison.decision
    return None if comparison.p is None else verdicts.Chance(p=comparison.p)


def _claims(comparison: Comparison) -> bool:
    """Whether a comparison claims anything, different or the same."""
    if comparison.decision is not None:
        return comparison.decision.answer is not verdicts.Answer.OPEN
    return comparison.verdict is not Verdict.SAME


def corrected(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, none confirmed that rests on what may be chance among so many comparisons."""
    family = _family(findings)
    return [_held(finding, family) for finding in findings]


def _held(finding: Finding, family: Mapping[Comparison | verdicts.Chance, float]) -> Finding:
    # What is inconclusive claims nothing that could be chance.
    chances = [family[c] for c in finding.comparisons if c in family and _claims(c)]
    chances += [family[test] for test in finding.tests if test.claimed]
    worst = max(chances, default=0.0)
    if finding.confidence is not Confidence.CONFIRMED or worst <= LEVEL:
        return finding
    doubt = f"as one of {count(len(family), 'comparison')} p = {worst:.2g} (Holm), which may be chance"
    return replace(finding, confidence=Confidence.PROVISIONAL, evidence=joined(finding.evidence, doubt))


def tally_of(findings: Sequence[Finding], questions: Iterable[Question] = ()) -> Tally:
    """Count how the comparisons end that these findings rest on, each once.

    Those that answer `questions` are counted apart too, with the correction for all.
    """
    family = _family(findings)
    named = [rule for question in questions for rule in question.answered_by]
    asked = [finding for finding in findings if any(rule_fits(finding.rule, rule) for rule in named)]
    whole = _ends(findings, family)
    return replace(whole, asked=_ends(asked, family)) if named else whole


def _ends(findings: Iterable[Finding], family: Mapping[Comparison | verdicts.Chance, float]) -> Tally:
    every = dict.fromkeys(comparison for finding in findings for comparison in finding.comparisons)
    ends: Counter[str] = Counter()
    for comparison in every:
        if comparison.verdict is Verdict.SAME and not comparison.equal:
            ends["inconclusive"] += 1
        elif comparison.confidence is not Confidence.CONFIRMED or family.get(comparison, 0.0) > LEVEL:
            ends["provisional"] += 1
        else:
            ends["same" if comparison.equal else "different"] += 1
    return Tally(
        comparisons=len(every),
        different=ends["different"],
        same=ends["same"],
        provisional=ends["provisional"],
        inconclusive=ends["inconclusive"],
    )
