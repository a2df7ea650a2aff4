"""What stands before the sections: answers, the decision table, and findings in the order of their weight."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.report.engine.answers import Answer, answers
from transect.report.engine.blocks import Charts
from transect.report.engine.collect import MadeSection
from transect.report.engine.context import Context
from transect.report.engine.decisions import DecisionTable, decision_table
from transect.report.engine.explored import chart_anchor
from transect.report.engine.finding import HEADINGS, Finding
from transect.report.engine.parts import DecisionColumn
from transect.report.engine.ranking import opened, ranked, turn_of
from transect.stats.comparisons import Confidence

# Findings, and rows of the decision table, that a page has room for; summary.json has all of them.
MAX_FINDINGS, MAX_ROWS = 250, 60

# Charts by section and subject: anchors and titles.
ChartLinks = dict[tuple[str, str], list[tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A finding in the page: its anchor, its cells and the command that runs them again."""

    finding: Finding
    anchor: str
    cells: tuple[str, ...]
    command: str


@dataclass(frozen=True, kw_only=True)
class Front:
    """All that the page says before its sections.

    `first` are the findings that are open, `more` the others under their headings, `tally` counts these by confidence.
    `all` has every finding in the order in which they were made. `left_out` findings and `rows_left_out` rows of the
    table are not shown.
    """

    answers: tuple[Answer, ...]
    table: DecisionTable
    first: tuple[Shown, ...]
    more: tuple[tuple[str, tuple[Shown, ...]], ...]
    tally: str
    all: tuple[Shown, ...]
    anchors: Mapping[int, str]
    left_out: int = 0
    rows_left_out: int = 0

    def anchor(self, finding: Finding) -> str:
        """Return the anchor of a finding."""
        return self.anchors[id(finding)]


def front(
    context: Context, columns: Sequence[DecisionColumn], findings: Sequence[Finding], again: Sequence[str]
) -> Front:
    """Put findings into the order in which they are read; `again` begins a command on the study's cells."""
    known = Cells(context.records, again)
    names = _anchors(findings)
    shown = {}
    for finding in findings:
        cells = known.of(finding)
        shown[id(finding)] = Shown(
            finding=finding, anchor=names[id(finding)], cells=tuple(cells), command=known.command(cells)
        )
    first, others = opened(findings)
    return Front(
        answers=tuple(answers(context.questions, findings)),
        table=decision_table(context, columns, findings),
        first=tuple(shown[id(finding)] for finding in first),
        more=tuple((heading, tuple(shown[id(finding)] for finding in members)) for heading, members in _headed(others)),
        tally=_tally(others),
        all=tuple(shown[id(finding)] for finding in findings),
        anchors=names,
    )


def shortened(front: Front, most: int = MAX_FINDINGS, rows: int = MAX_ROWS) -> Front:
    """Return what a page has room for: so many rows of the table, and about so many findings.

    Those that answers and the rows name are always among them; the others in the order of their weight.
    """
    table = replace(front.table, rows=front.table.rows[:rows])
    named = {id(finding) for answer in front.answers for _, finding in answer.clauses}
    named |= {id(finding) for row in table.rows for entry in row.entries for _, finding in entry.decided}
    others = [shown.finding for _, members in front.more for shown in members]
    free = max(0, most - len(front.first) - sum(id(finding) in named for finding in others))
    kept = named | {id(f) for f in [f for f in ranked(others) if id(f) not in named][:free]}
    more = ((heading, tuple(s for s in members if id(s.finding) in kept)) for heading, members in front.more)
    return replace(
        front,
        table=table,
        more=tuple((heading, members) for heading, members in more if members),
        left_out=sum(id(finding) not in kept for finding in others),
        rows_left_out=len(front.table.rows) - len(table.rows),
    )


def chart_links(sections: Iterable[MadeSection], subjects: Collection[str]) -> ChartLinks:
    """Return the charts of every section and subject, as anchors and titles; not those that are not drawn.

    A chart is about the longest subject in its name: `rate-iris-mlp-ce` is not about `iris-mlp`. One that names
    none is about all that have none of their own: those stand under the empty subject.
    """
    longest = sorted(subjects, key=len, reverse=True)
    found: ChartLinks = defaultdict(list)
    for section in sections:
        blocks = [block for block in section.body.blocks if isinstance(block, Charts)]
        for chart in (chart for block in blocks for chart in block.items if chart.svg):
            name = f"-{chart.name}-"
            subject = next((subject for subject in longest if subject and f"-{subject}-" in name), "")
            found[section.key, subject].append((chart_anchor(chart), chart.title))
    return dict(found)


def front_facts(front: Front, charts: ChartLinks) -> dict[str, Any]:
    """Return answers, decisions and findings for summary.json; `charts` as `chart_links` gives them."""
    return {
        "answers": [
            {
                "question": answer.question,
                "answer": answer.text,
                "confidence": answer.confidence,
                "findings": [front.anchor(finding) for _, finding in answer.clauses],
            }
            for answer in front.answers
        ],
        "decisions": [
            {"workload": row.subject, "question": entry.column.key, **_entry(entry, front)}
            for row in front.table.rows
            for entry in row.entries
        ],
        "findings": [
            {**_finding(shown), "chart": chart[0] if (chart := chart_of(shown.finding, charts)) else ""}
            for shown in front.all
        ],
    }


def chart_of(finding: Finding, charts: ChartLinks) -> tuple[str, str] | None:
    """Return the chart that shows what a finding says: anchor and title; None where its section has none of it."""
    key = (finding.section, finding.subject)
    able = charts.get(key) or charts.get((finding.section, ""), [])
    # Where trainings and runtimes are drawn apart, the finding's own.
    stages = {group.cell.stage for group in finding.groups}
    matching = [chart for chart in able if any(f"-{stage}-" in chart[0] for stage in stages)]
    return next(iter(matching or able), None)


def _entry(entry: Any, front: Front) -> dict[str, Any]:
    if not entry.decided:
        return {"decided": [], "why_not": entry.empty}
    return {
        "decided": [
            {**asdict(decision), "confidence": finding.confidence.value, "finding": front.anchor(finding)}
            for decision, finding in entry.decided
        ]
    }


def _finding(shown: Shown) -> dict[str, Any]:
    finding = shown.finding
    return {
        "text": finding.text,
        "evidence": finding.evidence,
        "confidence": finding.confidence.value,
        "kind": finding.kind,
        "about": finding.subject,
        "id": shown.anchor,
        "rule": finding.rule,
        "section": finding.section,
        "turn": turn_of(finding).name.replace("_", " ").lower(),
        "cells": list(shown.cells),
        "run_again": shown.command,
    }


def _anchors(findings: Sequence[Finding]) -> dict[int, str]:
    """Name every finding by its rule and subject: a link to it holds as long as these do."""
    seen: Counter[str] = Counter()
    names = {}
    for finding in findings:
        words = re.sub(r"[^a-z0-9]+", "-", f"{finding.rule} {finding.subject}".lower()).strip("-")
        seen[words] += 1
        # Two dashes: no other name ends so.
        names[id(finding)] = f"finding-{words}" + (f"--{seen[words]}" if seen[words] > 1 else "")
    return names


def _headed(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Gather findings by what they are about: workloads first, the study itself last."""
    groups = grouped(findings, lambda finding: finding.subject)
    last = list(HEADINGS)
    order = sorted(groups, key=lambda name: last.index(name) if name in HEADINGS else -1)
    return [(HEADINGS.get(name, name), groups[name]) for name in order]


def _tally(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.confidence for finding in findings)
    return ", ".join(f"{counts[level]} {level}" for level in Confidence if counts[level])


_RUN = ("transect", "run")


class Cells:
    """Knows the cells of a study by stage and workload, and the words that begin a command on it."""

    def __init__(self, records: Iterable[AnyRecord], study: Sequence[str]) -> None:
        """`study`: what follows `transect run`: the study's name or file, and options."""
        self._study = tuple(study)
        self._patterns: dict[tuple[str, str], list[str]] = {}
        self._of: dict[str, dict[str | None, list[str]]] = defaultdict(lambda: defaultdict(list))
        for record in records:
            self._of[record.stage][record.point.workload].append(record.cell_id)

    def of(self, finding: Finding) -> list[str]:
        """Return its cells as `transect run` and `transect why` take them: `STAGE/ID`, or a pattern.

        They are exactly those of its groups, where it names some, or else all cells of its subject in the
        stages of its rule, or all of these stages where none has any of its subject. Nothing without any cell.
        """
        if finding.groups:
            return sorted({f"{r.stage}/{r.cell_id}" for g in finding.groups for r in g.records})
        stages = [stage for stage in finding.stages if stage in self._of]
        if any(finding.subject in self._of[stage] for stage in stages):
            # What other stages do with other workloads is none of its business.
            stages = [stage for stage in stages if finding.subject in self._of[stage]]
        return [cell for stage in stages for cell in self._named(stage, finding.subject)]

    def _named(self, stage: str, workload: str) -> list[str]:
        """Return a pattern for a workload's cells of a stage, or their ids; the stage where it has none of its own."""
        if (stage, workload) not in self._patterns:
            self._patterns[stage, workload] = self._find(stage, workload)
        return self._patterns[stage, workload]

    def _find(self, stage: str, workload: str) -> list[str]:
        cells = self._of[stage].get(workload)
        pattern = f"{stage}/{workload}.*"
        if not cells:
            return [stage]
        matches = re.compile(fnmatch.translate(pattern)).match
        matched = sum(matches(f"{stage}/{cell}") is not None for every in self._of[stage].values() for cell in every)
        # A workload may be called so that a pattern says something else.
        exact = matched == len(cells) and all(matches(f"{stage}/{cell}") for cell in cells)
        return [pattern] if exact else sorted(f"{stage}/{cell}" for cell in cells)

    def command(self, cells: Sequence[str]) -> str:
        """Return the command that runs them again, quoted for a shell; empty without cells."""
        if not cells:
            return ""
        return shlex.join([*_RUN, *self._study, *cells, "--force"])
