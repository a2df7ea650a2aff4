"""A draft of a publication: what was asked, how it was measured, what came out, and what the records do not tell.

Every sentence is of a record, of a finding or of a rule; who measured, and why it matters, is for a person to write.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import PurePath

from transect.analysis.entries import inside
from transect.report.engine.answers import Answer
from transect.report.engine.banner import date
from transect.report.engine.blocks import Chart, Charts, Explained, Facts, Failure, Prose, Table, sureness
from transect.report.engine.collect import MadeSection
from transect.report.engine.finding import Finding
from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._bibliography import Bibliography
from transect.report.engine.formats._front import decisions
from transect.report.engine.formats._paper_parts import Parts, breakable, nameless
from transect.report.engine.formats.latex_tables import latex, plain_of
from transect.report.engine.report import Made
from transect.report.engine.shell import TEMPLATES
from transect.report.engine.text import count
from transect.stats.comparisons import Confidence

# Of one question: findings that are said in full, and charts of the sections that show more.
_MOST_FINDINGS, _MOST_FIGURES = 12, 3
# No limit is left out.
_ALL = 10**9
# Findings of the abstract where the study asks nothing.
_MOST_IN_ABSTRACT = 5
# What is said of the study itself, and what is doubtful, limits the others; claims have a section of their own.
_LIMITS, _APART = ("study", "doubts"), ("study", "doubts", "claims")


@REPORT_FORMATS.register("paper")
class Paper(ReportFormat):
    """A draft of a publication in LaTeX, with its figures and its bibliography."""

    place = "paper/"
    needs: Sequence[str] = ()

    def contents(self, made: Made) -> Contents:
        """Write the draft; what cannot be drawn, or is of an unknown kind, is named."""
        draft = _Draft(made)
        text = "\n".join(draft.lines()) + "\n"
        files = {
            "paper.tex": text.encode("utf-8", "replace"),
            "references.bib": "\n".join(draft.bibliography.entries).encode("utf-8", "replace"),
        }
        return Contents(files=files | draft.parts.figures, left_out=draft.parts.left_out)


class _Draft:
    """The paper of one made report, section by section."""

    def __init__(self, made: Made) -> None:
        self._made = made
        self._by_key = {section.key: section for section in made.every}
        self._told: set[str] = set()
        methods = [text for block in self._blocks("methods") for text in _texts(block)]
        self.bibliography = Bibliography.of(made, " ".join(methods))
        self.parts = Parts(made, self.bibliography)

    def lines(self) -> Iterator[str]:
        """Yield the whole file."""
        context = self._made.context
        yield (TEMPLATES / "paper.tex").read_text(encoding="utf-8").rstrip()
        yield rf"\title{{{latex(context.title)}}}"
        yield r"\author{}  % the records do not say who measured"
        yield from (rf"\date{{{latex(date(context.records))}}}", r"\begin{document}", r"\maketitle")
        yield from (r"\begin{abstract}", *self._abstract(), r"\end{abstract}")
        parts = (
            ("Question", self._question()),
            ("Methods", self._methods()),
            ("Results", self._results()),
            ("Published and measured", self._published()),
            ("Limits", self._limits()),
            ("Reproduce", self._reproduce()),
        )
        for title, part in parts:
            if lines := [*part]:
                yield from (rf"\section{{{title}}}", *lines)
        yield from (r"\clearpage", r"\nocite{*}", r"\bibliographystyle{plain}", r"\bibliography{references}")
        yield r"\end{document}"
        self._leave_out()

    @property
    def _tells_all(self) -> bool:
        asked = self._made.context.questions
        return not asked or any(not (question.answered_by or question.shown_in) for question in asked)

    def _blocks(self, key: str) -> Sequence[object]:
        return self._by_key[key].body.blocks if key in self._by_key else ()

    def _findings(self, subjects: Collection[str]) -> list[Finding]:
        """Return the findings about some subjects, in the order of the page."""
        shown = (one for _, members in self._made.front.more for one in members)
        return [one.finding for one in shown if one.finding.subject in subjects]

    def _topics(self) -> list[tuple[str, list[Finding]]]:
        """Return what findings are about, and those of each, without the study itself and claims."""
        told = [(heading, [one.finding for one in members]) for heading, members in self._made.front.more]
        return [(heading, members) for heading, members in told if members[0].subject not in _APART]

    def _abstract(self) -> Iterator[str]:
        answers = self._made.front.answers
        for answer in answers:
            clauses = [
                f"{latex(f'{clause.about}: {clause.text}' if clause.about else clause.text)} {_sure(clause.finding)}."
                for clause in answer.first
            ]
            stand = "stands" if len(answer.more) == 1 else "stand"
            more = [f"{count(len(answer.more), 'further finding')} {stand} in its section."] if answer.more else []
            said = " ".join([*clauses, *more]) or latex(
                "Shown in the results." if self._is_shown(answer) else answer.text
            )
            yield rf"\textbf{{{latex(answer.question)}}} {said}\par"
        if not answers:
            first = [finding for _, members in self._topics() for finding in members[:1]][:_MOST_IN_ABSTRACT]
            yield from (rf"{latex(f.text)} {_sure(f)}\par" for f in first)
            yield from (rf"{latex(f'{line.word}: {line.text}.')}\par" for line in self._made.front.banner)

    def _is_shown(self, answer: Answer) -> bool:
        """Whether sections that are there answer a question, and no finding does."""
        return not answer.clauses and not answer.instead and any(key in self._by_key for key in answer.beside)

    def _question(self) -> Iterator[str]:
        asked = [latex(answer.question) for answer in self._made.front.answers]
        yield from self.parts.listed(asked)
        if not asked:
            yield self.parts.text(
                f"The study {self._made.context.study} names no question: all that its records tell is told."
            )

    def _methods(self) -> Iterator[str]:
        yield from self.parts.facts([(line.word, line.text) for line in self._made.front.banner])
        if "methods" in self._by_key:
            yield self.parts.text(self._by_key["methods"].body.lead)
        yield from self.parts.blocks(self._blocks("methods"), "Methods")

    def _results(self) -> Iterator[str]:
        for section in self._made.pictures:
            yield from self._pictures(section)
        answers = self._made.front.answers
        for answer in answers:
            found = [clause.finding for clause in answer.clauses]
            said = "" if found or self._is_shown(answer) else answer.text
            yield from self._part(answer.question, found, answer.beside, said)
        shown = set()
        # All that was found is told where a question does not say what answers it.
        for heading, findings in self._topics() if self._tells_all else ():
            yield from self._part(heading, findings, (), "")
            shown |= {finding.section for finding in findings}
        # And what no finding speaks of is drawn.
        for section in self._made.sections if self._tells_all else ():
            if section.key not in shown and _charts(section):
                yield from self._part(section.title, (), (section.key,), section.body.lead)

    def _pictures(self, section: MadeSection) -> Iterator[str]:
        if charts := _charts(section):
            yield from (rf"\subsection{{{latex(section.title)}}}", *self.parts.figures_of(charts))

    def _part(self, title: str, findings: Sequence[Finding], beside: Sequence[str], said: str) -> Iterator[str]:
        """Say what was found, with what was compared as a table, and figures of the sections that show more."""
        yield rf"\subsection{{{latex(title)}}}"
        if said:
            yield self.parts.text(said)
        yield from self._said(findings)
        compared = decisions(self._made, {id(finding) for finding in findings})
        yield from self.parts.table(compared, f"What was compared: {title}")
        keys = dict.fromkeys([*(finding.section for finding in findings), *beside])
        sections = [self._by_key[key] for key in keys if key in self._by_key]
        self._told.update(keys)
        # Each section in turn gives its first, then its second: a question of two parts has two kinds of figures.
        of_section = [_nearest(_charts(section), findings, section.key) for section in sections]
        dealt = [chart for turn in zip_longest(*of_section) for chart in turn if chart is not None]
        every = [*{id(chart): chart for chart in dealt}.values()]
        found = every[:_MOST_FIGURES]
        yield from self.parts.figures_of(found)
        if further := len(every) - len(found):
            yield self.parts.text(f"{count(further, 'further figure')} in the report.")
        if not compared.rows:
            tables = [block for one in sections for block in one.body.blocks if isinstance(block, Table)]
            for one in [chart.table for chart in found[:1]] or tables[:1]:
                yield from self.parts.table(one, one.caption or f"Numbers: {title}")

    def _said(self, findings: Sequence[Finding], most: int = _MOST_FINDINGS) -> Iterator[str]:
        told = [rf"{latex(f.text)} {_sure(f)} {{\footnotesize {latex(f.evidence)}}}" for f in findings[:most]]
        items = [*map(breakable, told)]
        if len(findings) > most:
            items.append(f"{count(len(findings) - most, 'further finding')} in the report.")
        yield from self.parts.listed(items)

    def _published(self) -> Iterator[str]:
        if not self.bibliography.works:
            return
        cites = (rf"{latex(short)}\nobreakspace{{}}\cite{{{key}}}" for short, key in self.bibliography.works.items())
        yield f"Held beside these records: {', '.join(cites)}." + r"\par"
        if "claims" in self._by_key:
            yield self.parts.text(self._by_key["claims"].body.lead)
            yield from self.parts.blocks(self._blocks("claims"), "Published and measured")
        else:
            yield self.parts.text("This study measures none of their claims.")

    def _limits(self) -> Iterator[str]:
        front, context = self._made.front, self._made.context
        yield from self._said([*(one.finding for one in front.first), *self._findings(_LIMITS)], _ALL)
        unknown = [latex(f"Not known in full: {answer.question}") for answer in front.answers if _open(answer)]
        shared = sum(group.over_subscribed for groups in context.groups.values() for group in groups)
        if shared:
            unknown.append(f"No claim of speed rests on {count(shared, 'cell')} with more processes than cores.")
        yield from self.parts.listed(unknown)
        failures = self._blocks("failures")
        # What to do about them, and where their logs lie, is for whoever runs the study.
        yield from self.parts.blocks([one for one in failures if isinstance(one, (Failure, Table))], "Failures")
        if not context.not_ok and not context.problems:
            yield self.parts.text("Nothing failed and nothing was skipped.")

    def _reproduce(self) -> Iterator[str]:
        records = self._made.context.records
        commits = sorted({str(one) for record in records if (one := inside(record.provenance, "git.commit"))})
        # Where it lay on the machine that measured is nobody else's business.
        again = [PurePath(word).name if word.startswith("/") else word for word in self._made.again]
        commands = [
            *(["git", "checkout", commit] for commit in commits[:1] if len(commits) == 1),
            ["transect", "run", *again],
            ["transect", "report", *again[:1], *_results(again), "--format", "paper"],
        ]
        typed = r"\\".join(latex(shlex.join(command)) for command in commands)
        yield rf"\begin{{flushleft}}\ttfamily {typed}\end{{flushleft}}"
        if any(inside(record.provenance, "git.dirty") is True for record in records):
            yield self.parts.text("Some records were made with edits that no commit holds.")
        if len(commits) > 1:
            yield self.parts.text(f"The records are of {len(commits)} commits: {', '.join(commits)}.")
        yield rf"Software that the records name: \cite{{{','.join(self.bibliography.software)}}}.\par"
        yield from self.parts.blocks([*map(nameless, self._blocks("provenance"))], "Environment")

    def _leave_out(self) -> None:
        """Name the sections that no question led to, and count the charts beside those that are drawn."""
        told = {*self._told, "methods", "failures", "provenance", "claims", *(one.key for one in self._made.pictures)}
        if left := [key for key in self._by_key if key not in told]:
            self.parts.left_out.append(
                f"sections that no question names: {', '.join(left)}; --format markdown has them"
            )
        more = sum(len(_charts(section)) for section in self._made.every) - len(self.parts.figures)
        if more:
            self.parts.left_out.append(f"{count(more, 'further chart')}; --format figures has them")


def _sure(finding: Finding) -> str:
    return rf"\emph{{({latex(sureness(finding.confidence).text)})}}"


def _results(again: Sequence[str]) -> Sequence[str]:
    """Return where `transect run` writes its results, for the command that reads them."""
    place = again.index("--results") if "--results" in again else len(again)
    return again[place : place + 2]


def _open(answer: Answer) -> bool:
    return answer.confidence is Confidence.INCONCLUSIVE and not answer.beside


def _charts(section: MadeSection) -> list[Chart]:
    return [chart for block in section.body.blocks if isinstance(block, Charts) for chart in block.items]


def _nearest(every: Sequence[Chart], findings: Sequence[Finding], key: str) -> list[Chart]:
    """Return of a section's charts those that show most of the cells of each finding that leads there, else the first ones."""
    leading = [finding for finding in findings if finding.section == key]

    def shared(finding: Finding, chart: Chart) -> tuple[int, int]:
        cells = {cell for row in chart.table.about for cell in row.cell}
        workloads = {workload for row in chart.table.about for workload in row.workload}
        return len(cells & {*finding.facets.cell}), len(workloads & {*finding.facets.workload})

    if not leading or not every:
        return [*every]
    return [max(every, key=partial(shared, finding)) for finding in leading]


def _texts(block: object) -> list[str]:
    if isinstance(block, Facts):
        return [plain_of(value) for _, value in block.items]
    return [block.text] if isinstance(block, (Prose, Explained)) else []
