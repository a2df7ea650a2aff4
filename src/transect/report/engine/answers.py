"""What the page says first: for each question of the study a sentence, and its confidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.groups import grouped
from transect.domain.study import Question
from transect.report.engine.finding import HEADINGS, Finding, lowest_confidence, rule_fits
from transect.report.engine.ranking import ranked
from transect.report.engine.text import clean
from transect.stats.comparisons import Confidence

# The confidence of an answer of which a part is inconclusive and another is not.
PARTLY = "partly inconclusive"

# Clauses of one answer: more are counted.
_MAX_CLAUSES = 4
# Characters of one: a longer one ends where a part of it ends, and its finding tells the rest.
_MAX_LENGTH = 190


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A question and its answer: `clauses` are sentences, each with the finding that says it.

    `confidence` is the lowest of its findings, or `partly inconclusive` where some are inconclusive and others not;
    `mixed`: the clauses differ in confidence. `left_out` counts further findings. Without any clause, `instead` says
    why. `beside` are the keys of sections that show more, with their numbers of findings.
    """

    question: str
    clauses: tuple[tuple[str, Finding], ...] = ()
    confidence: str = Confidence.INCONCLUSIVE
    mixed: bool = False
    left_out: int = 0
    instead: str = ""
    beside: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """The answer as one sentence; each clause with its own confidence where they differ."""
        if not self.clauses:
            where = ", ".join(f"'{key}'" for key, _ in self.beside)
            return f"{self.instead} {where}".strip() + "."
        clauses = [f"{text} ({finding.confidence})" if self.mixed else text for text, finding in self.clauses]
        more = [f"{self.left_out} more"] if self.left_out else []
        sentence = "; ".join([*clauses, *more])
        return sentence if sentence.endswith("…") else f"{sentence}."


def answers(questions: Iterable[Question], findings: Sequence[Finding]) -> list[Answer]:
    """Answer every question by the findings of the rules that it names."""
    return [answer(question, findings) for question in questions]


def answer(question: Question, findings: Sequence[Finding]) -> Answer:
    """Answer one question; where it names no rule, or no finding comes of its rules, the answer says so."""
    ask = clean(question.ask)
    shown_in = tuple((key, sum(finding.section == key for finding in findings)) for key in question.shown_in)
    if not question.answered_by:
        sections = grouped([finding for finding in findings if finding.section], lambda finding: finding.section)
        return Answer(
            question=ask,
            instead="no rule of this report decides this; what was measured stands in"
            if shown_in
            else "the study file names no rule that answers this (answered_by), so no sentence is picked "
            "for it; what was found stands in",
            beside=shown_in or tuple((key, len(members)) for key, members in sections.items()),
        )
    of_rule = [
        _dealt([finding for finding in findings if rule_fits(finding.rule, named)])
        for named in dict.fromkeys(question.answered_by)
    ]
    matched = list({id(finding): finding for members in of_rule for finding in members}.values())
    if not matched:
        rules = ", ".join(question.answered_by)
        kin = {named.partition(".")[0] for named in question.answered_by}
        beside = sorted({finding.rule for finding in findings if finding.rule.partition(".")[0] in kin})
        near = f" (there are findings of {', '.join(beside)})" if beside else ""
        return Answer(
            question=ask,
            beside=shown_in,
            instead=f"nothing here answers it yet: the cells there are give no finding of {clean(rules)}{near}",
        )
    # Each rule in turn gives its first, then its second: a question of two parts has two answers.
    turns = max(len(members) for members in of_rule)
    dealt = [members[turn] for turn in range(turns) for members in of_rule if turn < len(members)]
    chosen = list({id(finding): finding for finding in dealt}.values())[:_MAX_CLAUSES]
    # In the order of the rules that the question names.
    answering = [finding for finding in matched if any(finding is picked for picked in chosen)]
    levels = {finding.confidence for finding in matched}
    return Answer(
        question=ask,
        clauses=tuple((_clause(finding), finding) for finding in answering),
        mixed=len(levels) > 1,
        confidence=_confidence(levels),
        left_out=len(matched) - len(answering),
        beside=shown_in,
    )


def _dealt(findings: Sequence[Finding]) -> list[Finding]:
    """Put the first finding of every subject before the second of any: an answer is about all of them.

    The findings of a workload keep the order in which they were made: a rule makes the main one first. Findings about
    no workload are ordered by their weight alone, as the workloads are.
    """
    weight = {id(finding): place for place, finding in enumerate(ranked(findings))}
    turn: Counter[str] = Counter()
    places = {}
    for finding in findings:
        of_workload = finding.subject not in HEADINGS
        places[id(finding)] = (turn[finding.subject] if of_workload else 0, weight[id(finding)])
        turn[finding.subject] += 1
    return sorted(findings, key=lambda finding: places[id(finding)])


def _clause(finding: Finding) -> str:
    where = "" if finding.subject in HEADINGS else finding.subject
    scope = finding.scope or (finding.decision.scope if finding.decision else "")
    place = " ".join(part for part in (where, scope) if part)
    sentence = shortened(finding.brief)
    if place:
        return f"{place}: {sentence}"
    return sentence if finding.named else sentence[:1].upper() + sentence[1:]


def shortened(text: str, most: int = _MAX_LENGTH) -> str:
    """Return a claim up to the last end of a part that is not too far, with `…` where more was said.

    >>> shortened("it wins; by far; of three", 16)
    'it wins; by far …'
    """
    if len(text) <= most:
        return text
    ends = [found.start() for found in re.finditer(r"; |: |\. (?=[A-Z])|, ", text)]
    strong = [end for end in ends if text[end] != ","] or ends
    near = [end for end in strong if most / 4 < end <= most] or [end for end in ends if end <= most]
    # A number, or a word, is never cut.
    end = max(near, default=text.rfind(" ", 0, most))
    return f"{text[: end if end > 0 else most]} …"


def _confidence(levels: Collection[Confidence]) -> str:
    if Confidence.INCONCLUSIVE in levels and len(levels) > 1:
        return PARTLY
    return lowest_confidence(levels).value
