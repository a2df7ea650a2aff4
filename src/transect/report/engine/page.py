"""What stands before the sections: answers, the decision table, and findings in the order of their weight."""

from __future__ import annotations

import glob
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from transect.analysis.entries import AnyRecord
from transect.analysis.groups import grouped
from transect.report.engine.answers import Answer, Runs, answers
from transect.report.engine.banner import Line, banner
from transect.report.engine.blocks import sureness
from transect.report.engine.context import Context
from transect.report.engine.deciding import tally_of
from transect.report.engine.decisions import DecisionTable, decision_table
from transect.report.engine.finding import HEADINGS, Finding, rule_fits
from transect.report.engine.parts import DecisionColumn, FindingMaker
from transect.report.engine.ranking import ranked, turn_of
from transect.stats.comparisons import Confidence

# Findings, and rows of the decision table, that a page has room for; summary.json has all of them.
MAX_FINDINGS, MAX_ROWS = 250, 60


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

    `first` are those findings that take the ground from under the others, `more` the others under their headings,
    `tally` counts these by confidence. `all` has every finding by its `id`, in the order in which they were made.
    `left_out` findings and `rows_left_out` rows of the table are not shown.
    """

    banner: tuple[Line, ...]
    answers: tuple[Answer, ...]
    table: DecisionTable
    first: tuple[Shown, ...]
    more: tuple[tuple[str, tuple[Shown, ...]], ...]
    tally: str
    all: Mapping[int, Shown]
    left_out: int = 0
    rows_left_out: int = 0

    def anchor(self, finding: Finding) -> str:
        """Return the anchor of a finding."""
        return self.all[id(finding)].anchor


def front(
    context: Context,
    makers: Sequence[FindingMaker],
    columns: Sequence[DecisionColumn],
    findings: Sequence[Finding],
    again: Sequence[str],
) -> Front:
    """Put findings into the order in which they are read; `again` begins a command on the study's cells."""
    known = Cells(context.records, again)
    shown = {}
    for finding, anchor in zip(findings, _anchors(findings), strict=True):
        cells = known.of(finding)
        shown[id(finding)] = Shown(finding=finding, anchor=anchor, cells=tuple(cells), command=known.command(cells))
    order = ranked(findings)
    first, others = ([f for f in order if f.alarm is alarm] for alarm in (True, False))
    return Front(
        banner=tuple(banner(context, tally_of(findings, context))),
        answers=tuple(answers(context.questions, findings, _runs(context, makers))),
        table=decision_table(context, columns, findings),
        first=tuple(shown[id(finding)] for finding in first),
        more=tuple((heading, tuple(shown[id(finding)] for finding in members)) for heading, members in _headed(others)),
        tally=_tally(others),
        all=shown,
    )


def shortened(front: Front, most: int = MAX_FINDINGS, rows: int = MAX_ROWS) -> Front:
    """Return what a page has room for: so many rows of the table, and about so many findings.

    Those that answers and the rows name are always among them; the others in the order of their weight.
    """
    table = replace(front.table, rows=front.table.rows[:rows])
    named = {id(clause.finding) for answer in front.answers for clause in answer.clauses}
    named |= {id(made.finding) for row in table.rows for entry in row.entries for made in entry.decided}
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


def front_facts(front: Front) -> dict[str, Any]:
    """Return answers, decisions and findings for summary.json."""
    return {
        "banner": {line.word: line.text for line in front.banner},
        "answers": [
            {
                "question": answer.question,
                "answer": answer.text,
                "confidence": answer.confidence,
                "findings": [front.anchor(clause.finding) for clause in answer.clauses],
            }
            for answer in front.answers
        ],
        "decisions": [
            {"workload": row.subject, "question": entry.column.key, **_entry(entry, front)}
            for row in front.table.rows
            for entry in row.entries
        ],
        "findings": [_finding(shown) for shown in front.all.values()],
    }


def _entry(entry: Any, front: Front) -> dict[str, Any]:
    if not entry.decided:
        return {"decided": [], "why_not": entry.empty}
    return {
        "decided": [
            {
                **asdict(made.decision),
                "bars": [asdict(bar) for bar in made.bars],
                "confidence": made.finding.confidence.value,
                "finding": front.anchor(made.finding),
            }
            for made in entry.decided
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


def _anchors(findings: Sequence[Finding]) -> Iterator[str]:
    """Name every finding by its rule and subject: a link to it holds as long as these do."""
    seen: Counter[str] = Counter()
    for finding in findings:
        words = re.sub(r"[^a-z0-9]+", "-", f"{finding.rule} {finding.subject}".lower()).strip("-")
        seen[words] += 1
        # Two dashes: no other name ends so.
        yield f"finding-{words}" + (f"--{seen[words]}" if seen[words] > 1 else "")


def _headed(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Gather findings by what they are about: workloads first, the study itself last."""
    groups = grouped(findings, lambda finding: finding.subject)
    last = list(HEADINGS)
    order = sorted(groups, key=lambda name: last.index(name) if name in HEADINGS else -1)
    return [(HEADINGS.get(name, name), groups[name]) for name in order]


def _tally(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.confidence for finding in findings)
    return ", ".join(f"{counts[level]} {sureness(level).text}" for level in Confidence if counts[level])


def _runs(context: Context, makers: Sequence[FindingMaker]) -> Runs:
    """Return what says how many runs there are of the stages that a rule looks at, and how many were asked for."""
    there = Counter(record.stage for record in context.records)
    missing = Counter(stage for stage, _ in (*context.loaded.running, *context.loaded.waiting))

    def runs(rule: str) -> tuple[int, int]:
        stages = {s for m in makers if rule_fits(m.name, rule) or rule_fits(rule, f"{m.name}*") for s in m.stages}
        amount = sum(there[stage] for stage in stages)
        return amount, amount + sum(missing[stage] for stage in stages)

    return runs


class Cells:
    """Knows the cells of a study by stage and workload, and the words that begin a command on it."""

    def __init__(self, records: Iterable[AnyRecord], study: Sequence[str]) -> None:
        """`study`: what follows `transect run`: the study's name or file, and options."""
        self._study = tuple(study)
        self._of: dict[str, set[str | None]] = defaultdict(set)
        for record in records:
            self._of[record.stage].add(record.point.workload)

    def of(self, finding: Finding) -> list[str]:
        """Return its cells as `transect run` and `transect why` take them: `STAGE/ID`, or a pattern.

        They are those of its groups, where it names some, or else all cells of its subject in the stages of its rule, or
        all of these stages where none has any of its subject. Nothing without any cell.
        """
        if finding.groups:
            return sorted({f"{r.stage}/{r.cell_id}" for g in finding.groups for r in g.records})
        stages = [stage for stage in finding.stages if stage in self._of]
        if any(finding.subject in self._of[stage] for stage in stages):
            # What other stages do with other workloads is none of its business.
            stages = [stage for stage in stages if finding.subject in self._of[stage]]
            return [f"{stage}/{glob.escape(finding.subject)}.*" for stage in stages]
        return stages

    def command(self, cells: Sequence[str]) -> str:
        """Return the command that runs them again, quoted for a shell; empty without cells."""
        return shlex.join(["transect", "run", *self._study, *cells, "--force"]) if cells else ""
