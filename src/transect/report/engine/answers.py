"""What the page says first: for each question of the study a sentence on each workload, and how sure it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from transect.analysis.groups import grouped
from transect.domain.study import Question
from transect.report.engine.blocks import sureness
from transect.report.engine.finding import HEADINGS, Finding, lowest_confidence, rule_fits
from transect.report.engine.ranking import ranked
from transect.report.engine.text import clean, count
from transect.stats.comparisons import Confidence

# Lines of one answer that are open; the others fold.
_OPEN = 4
# How many runs there are that a rule looks at, and how many the study asks for.
Runs = Callable[[str], tuple[int, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """One line of an answer, by one finding: what it is about, empty for the study itself, and what holds of it."""

    about: str
    text: str
    finding: Finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A question and its answer, a line for each finding; `confidence` is the lowest of them.

    Without any line, `instead` says why. `beside` are the keys of sections that show more.
    """

    question: str
    clauses: tuple[Clause, ...] = ()
    confidence: Confidence = Confidence.INCONCLUSIVE
    instead: str = ""
    beside: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[Clause, ...]:
        """The lines that are open."""
        return self.clauses[:_OPEN]

    @property
    def more(self) -> tuple[Clause, ...]:
        """The lines that are folded."""
        return self.clauses[_OPEN:]

    @property
    def text(self) -> str:
        """The answer as one paragraph, for formats without lines."""
        said = [f"{c.about}: {c.text}" if c.about else c.text for c in self.clauses]
        lines = [f"{line} ({sureness(c.finding.confidence).text})." for line, c in zip(said, self.clauses, strict=True)]
        return " ".join(lines) or self.instead or f"See {', '.join(self.beside)}."


def answers(questions: Iterable[Question], findings: Sequence[Finding], runs: Runs) -> list[Answer]:
    """Answer every question by the findings of the rules that it names."""
    return [answer(question, findings, runs) for question in questions]


def answer(question: Question, findings: Sequence[Finding], runs: Runs) -> Answer:
    """Answer one question; where it names no rule, or no finding comes of its rules, the answer says so."""
    of_rule = [
        _dealt([f for f in findings if rule_fits(f.rule, named)]) for named in dict.fromkeys(question.answered_by)
    ]
    # Each rule in turn gives its first, then its second: a question of two parts has two answers.
    turns = max(map(len, of_rule), default=0)
    dealt = [members[turn] for turn in range(turns) for members in of_rule if turn < len(members)]
    chosen = list({id(finding): finding for finding in dealt}.values())
    # What is open stands together by what it is about.
    chosen = [f for members in grouped(chosen[:_OPEN], lambda f: f.subject).values() for f in members] + chosen[_OPEN:]
    return Answer(
        question=clean(question.ask),
        clauses=tuple(map(_clause, chosen)),
        confidence=lowest_confidence(f.confidence for f in chosen) if chosen else Confidence.INCONCLUSIVE,
        instead="" if chosen else _instead(question, runs),
        beside=tuple(question.shown_in),
    )


def _instead(question: Question, runs: Runs) -> str:
    if not question.answered_by:
        return (
            "" if question.shown_in else "The study does not say which findings answer this; all of them stand below."
        )
    there, wanted = map(max, zip(*map(runs, question.answered_by), strict=True))
    if not wanted:
        return "Not measured: this study has no such runs."
    if there < wanted:
        return f"Not measured yet ({there} of {count(wanted, 'run')} there)."
    return f"Not known: {count(wanted, 'run')} there, and none of them tells."


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


def _clause(finding: Finding) -> Clause:
    where = "" if finding.subject in HEADINGS else finding.subject
    scope = finding.scope or (finding.decision.scope if finding.decision else "")
    about, text = " ".join(filter(None, (where, scope))), finding.brief
    return Clause(about=about, text=text if about or finding.named else text[:1].upper() + text[1:], finding=finding)
