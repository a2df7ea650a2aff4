"""A report that was made, before anybody writes it: what every format of it is written from."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transect.analysis.entries import Key
from transect.analysis.load import Problem, by_status, load_records
from transect.analysis.table import write_parquet
from transect.domain.claims import Work
from transect.domain.errors import FAULTS
from transect.domain.study import Question
from transect.domain.system import SystemPrice
from transect.domain.until import AnalysisPlan
from transect.report.engine.collect import MadeSection, drawn_out, make_findings, make_section
from transect.report.engine.context import Context
from transect.report.engine.deciding import tally_of
from transect.report.engine.finding import Finding
from transect.report.engine.page import Front, front, front_facts
from transect.report.engine.paginate import fitted
from transect.report.engine.parts import Section, all_parts
from transect.report.engine.rules import unknown_names
from transect.report.engine.slide import slide_of
from transect.report.engine.source import source_of


@dataclass(kw_only=True)
class Made:
    """One study's findings and sections as data. Whoever writes them may add to `context.problems`.

    `front` is what stands before the sections, `pictures` the sections that are drawn there. `sections` holds all others
    but those of `last`, which count what the others could not read: ask for `every` when nothing more is read. `again` is
    what follows `transect run` in a command on this study.
    """

    context: Context
    findings: list[Finding]
    front: Front
    sections: list[MadeSection]
    pictures: Sequence[MadeSection] = ()
    last: Sequence[Section] = ()
    again: Sequence[str] = ()

    @cached_property
    def made_last(self) -> list[MadeSection]:
        """The sections that count what others could not read; without those that have nothing to say."""
        made = (make_section(section, self.context) for section in self.last)
        return [section for section in made if section is not None]

    @property
    def every(self) -> list[MadeSection]:
        """All sections in the order in which a reader meets them."""
        return [*self.pictures, *self.made_last, *self.sections]

    @property
    def source(self) -> str:
        """What stands beneath every picture: whose numbers these are, and of when."""
        return source_of(self.context)

    @cached_property
    def slide(self) -> str:
        """One page for a slide as SVG; empty where nothing is answered, or it cannot be made."""
        try:
            return slide_of(self.context, self.front.answers, self.front.table, self.source)
        except FAULTS as error:  # as for a section
            self.context.fault("summary.svg", "could not be made", error)
            return ""

    @cached_property
    def shown(self) -> list[MadeSection]:
        """The sections with as much of them as a page has room for."""
        try:
            return fitted(self.sections)
        except FAULTS as error:  # as for a section
            self.context.fault("page", "sections could not be measured", error)
            return self.sections

    @cached_property
    def table(self) -> bytes | None:
        """The bytes of records.parquet, a row per record and metric; None when it cannot be made."""
        stream = io.BytesIO()
        try:
            write_parquet(self.context.records, stream)
        except Exception as error:  # as for a section
            self.context.fault("records.parquet", "could not be made", error)
            return None
        return stream.getvalue()

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What summary.json holds: counts, answers, decisions, findings, failures, problems."""
        return _summary(self.context, self.findings, front_facts(self.front))


def make_all(
    results: Path,
    *,
    title: str,
    questions: Sequence[str | Question] = (),
    works: Sequence[Work] = (),
    since: Mapping[str, str] | None = None,
    planned: Collection[Key] | None = None,
    only: Collection[str] | None = None,
    analysis_plan: AnalysisPlan | None = None,
    price: SystemPrice | None = None,
    again: Sequence[str] = (),
) -> Made:
    """Read `results/STUDY/` and make every finding and section.

    `planned` holds the (stage, cell id) of each cell that the study asks for: records of other
    cells are listed apart and stand in no count, finding or chart, and cells without a record are
    running or not there yet. None: every record counts. `only`: keys of the sections to make. `analysis_plan`: within
    which margin cells are the same. `works`: published works whose claims are held beside the cells, `since`: since when
    each of their rules has stood. `price`: what a node costs. `again`: what follows `transect run` in a command on this study, its name or file
    and options; without any its name.

    Missing, failed and skipped cells are shown, and unreadable records listed as problems; a part
    of the report that cannot be made says so in its place: none of them raises.
    """
    loaded = load_records(results, planned)
    context = Context(loaded, title=title, questions=questions, works=works, since=since, analysis_plan=analysis_plan)
    context.price = price
    parts = all_parts()
    context.problems += parts.problems
    findings = make_findings(context, parts.findings)
    for ask, what in unknown_names(context.questions, parts):
        context.problems.append(Problem(where=f"question '{ask}'", what=what))
    wanted = [section for section in parts.sections if only is None or section.key in only]
    made = [(section, make_section(section, context)) for section in wanted if not section.last]
    drawn = [(section, drawn_out(done, context)) for section, done in made if done is not None]
    words = tuple(again) or (context.study,)
    return Made(
        again=words,
        context=context,
        findings=findings,
        front=front(context, parts.findings, parts.columns, findings, words),
        sections=[done for section, done in drawn if not section.front],
        pictures=[done for section, done in drawn if section.front],
        last=[section for section in wanted if section.last],
    )


def _summary(context: Context, findings: Sequence[Finding], first: dict[str, Any]) -> dict[str, Any]:
    loaded = context.loaded
    by_stage: dict[str, Counter[str]] = defaultdict(Counter)
    for record in context.records:
        by_stage[record.stage][record.status.value] += 1
    return {
        "study": context.study,
        "counts": by_status(context.records),
        "pending": {"running": len(loaded.running), "waiting": len(loaded.waiting)},
        "comparisons": asdict(tally_of(findings, context)),
        "by_stage": {stage: {**by_status(()), **by_stage[stage]} for stage in context.stages},
        **first,
        "failures": [
            {
                "cell": record.cell_id,
                "stage": record.stage,
                "status": record.status.value,
                "cause": record.cause.value if record.cause else None,
                "message": record.message,
            }
            for record in context.not_ok
        ],
        "running": ["/".join(key) for key in loaded.running],
        "without_record": ["/".join(key) for key in (*loaded.running, *loaded.waiting)],
        "unreadable": [str(problem) for problem in loaded.unreadable],
        "earlier": ["/".join(key) for key in loaded.earlier],
        "problems": [str(problem) for problem in context.problems],
    }
