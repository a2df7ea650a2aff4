"""What a report says of records: its findings and sections one by one, and the prose of named sets of records.

`pytest FILE --snapshot-update` writes a topic's prose, `__snapshots__/FILE.ambr`, anew; a person reads its difference.
What a finding says by its numbers, its confidence and whom it names is the business of the tests beside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from transect.analysis.load import Loaded
from transect.domain.claims import Work, rule_id
from transect.domain.paths import ROOT
from transect.domain.record import Record
from transect.domain.strict_yaml import load_model
from transect.domain.study import Question
from transect.domain.system import SystemPrice
from transect.report.engine.blocks import Chart, Charts, Chip, Heading, Table
from transect.report.engine.collect import make_findings, make_section
from transect.report.engine.context import Context
from transect.report.engine.finding import Finding
from transect.report.engine.parts import all_parts


def context(
    *records: Record, works: Sequence[Work] = (), asks: Sequence[str] = ("*",), price: SystemPrice | None = None
) -> Context:
    """Return a study of these records, which asks for what these rules decide; rules of works are older than the records."""
    asked = Question(ask="?", answered_by=list(asks))
    loaded = Loaded(study="s", records=list(records))
    made = Context(loaded, title="t", works=works, since=old_rules(works), questions=[asked])
    made.price = price
    return made


def old_rules(works: Iterable[Work]) -> dict[str, str]:
    """Return every rule of some works, fixed before any record."""
    rules = [rule_id(work, claim) for work in works for claim in work.claims]
    return dict.fromkeys(rules, "2000-01-01T00:00:00+00:00")


@cache
def shipped(name: str) -> Work:
    """Return a work that the project comes with."""
    return load_model(ROOT / "config" / "claims" / f"{name}.yaml", Work)


def findings(*records: Record, works: Sequence[Work] = ()) -> dict[str, list[Finding]]:
    """Return the findings by kind."""
    made = context(*records, works=works)
    found: dict[str, list[Finding]] = {}
    for finding in make_findings(made, all_parts().findings):
        found.setdefault(finding.kind, []).append(finding)
    assert not made.problems, made.problems
    return found


def only(kind: str, *records: Record) -> Finding:
    [found] = findings(*records)[kind]
    return found


class Sets(Mapping[str, list[Record]]):
    """Sets of records by name: each, and what is found in it, is made once, when a test first asks."""

    def __init__(self, *, works: Sequence[Work] = (), **sets: Callable[[], list[Record]]) -> None:
        self._sets, self._works = sets, works
        self._records: dict[str, list[Record]] = {}
        self._found: dict[str, dict[str, list[Finding]]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._sets)

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, name: str) -> list[Record]:
        if name not in self._records:
            self._records[name] = self._sets[name]()
        return self._records[name]

    def findings(self, name: str) -> dict[str, list[Finding]]:
        if name not in self._found:
            self._found[name] = findings(*self[name], works=self._works)
        return self._found[name]

    def only(self, kind: str, name: str) -> Finding:
        [found] = self.findings(name)[kind]
        return found


def prose(sets: Mapping[str, Iterable[Record]], *kinds: str, works: Sequence[Work] = ()) -> dict[str, list[str]]:
    """Return what findings of these kinds say of each set: what an earlier one said already is named by it."""
    texts: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for name in sets:
        found = sets.findings(name) if isinstance(sets, Sets) else findings(*sets[name], works=works)
        every = written(finding for kind in kinds for finding in found.get(kind, ()))
        texts[name] = [f"{text[:60]} … as in {first[text]}" if text in first else text for text in every]
        first |= {text: name for text in every if text not in first}
    return texts


def written(found: Iterable[Finding]) -> list[str]:
    """Return findings as they are read."""
    return ["\n".join(lines(finding)) for finding in found]


def lines(finding: Finding) -> list[str]:
    """Return a finding as it is read: its confidence, the sentence, its evidence piece by piece."""
    # How small a tiny chance is hangs on the last bits of its times, a cell's digest on all axes that there are.
    evidence_text = re.sub(r"p = [\d.]+e-(0[6-9]|[1-9]\d+)", "p < 1e-5", finding.evidence)
    evidence_text = re.sub(r"~[0-9a-f]{8}\b", "", evidence_text)
    evidence = [f"  - {piece}" for piece in evidence_text.split("; ") if piece]
    short = [f"  in short: {finding.short}"] if finding.short else []
    return [f"{finding.kind}, {finding.confidence}: {finding.text}", *short, *evidence]


class Made:
    """One section that records make."""

    def __init__(self, key: str, *records: Record, **given) -> None:
        self.context = context(*records, **given)
        [section] = [part for part in all_parts().sections if part.key == key]
        made = make_section(section, self.context)
        assert not self.context.problems, self.context.problems
        # A section that has nothing to show is not there.
        self.lead, self.blocks = (made.body.lead, made.body.blocks) if made is not None else ("", [])
        self.charts = [c for b in self.blocks if isinstance(b, Charts) for c in b.items]
        self.headings = [b for b in self.blocks if isinstance(b, Heading)]
        self.tables = [b for b in self.blocks if isinstance(b, Table)]

    @property
    def text(self) -> str:
        """All that is said outside of charts and tables."""
        texts = (getattr(block, "text", "") for block in self.blocks)
        return "\n".join(text for text in texts if text and isinstance(text, str))

    @property
    def prose(self) -> str:
        """All that is read: sentences, titles, captions, and the first rows behind charts and in tables."""
        charts = [
            "\n".join([f"chart: {c.title} [{c.axis}] {c.note}".rstrip().replace(" []", ""), *listed(c.table)])
            for c in self.charts
        ]
        tables = ["\n".join([f"table: {table.caption or table.folded}", *listed(table)]) for table in self.tables]
        return "\n".join(filter(None, [self.lead, self.text, *charts, *tables]))

    def chart(self, title: str) -> Chart:
        """Return the chart whose title begins so."""
        [found] = [chart for chart in self.charts if chart.title.startswith(title)]
        return found

    def table(self, title: str) -> list[dict[str, str]]:
        """Return the rows of the table whose caption or title begins so, by their heads."""
        [found] = [table for table in self.tables if (table.caption or table.folded).startswith(title)]
        return rows(found)


def rows(table: Table) -> list[dict[str, str]]:
    """Return what stands in a table, by the heads of its columns."""
    heads = [column.title for column in table.columns]
    plain = [[v.text if isinstance(v, Chip) else str(v) for v in row] for row in table.rows]
    return [dict(zip(heads, row, strict=True)) for row in plain]


def listed(table: Table, most: int = 16) -> list[str]:
    """Return the head and the first rows of a table as a line each; a chip is shown with its tone."""
    lines = [[column.title for column in table.columns]]
    lines += [[f"{v.text} [{v.tone}]" if isinstance(v, Chip) else v or "" for v in row] for row in table.rows[:most]]
    more = len(table.rows) - most
    return ["  " + " | ".join(line).rstrip() for line in lines] + [f"  … {more} more"] * (more > 0)


def ratios(found: Finding) -> list[float]:
    """Return the ratio of each comparison that a claim rests on, of its first side to its second."""
    return [c.decision.ratio if c.decision else c.a.median / c.b.median for c in found.comparisons]
