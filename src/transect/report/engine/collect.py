"""Making all findings and sections of a report, whatever the records hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from transect.domain.errors import FAULTS
from transect.report.engine.blocks import Body, Charts, Prose
from transect.report.engine.context import Context
from transect.report.engine.deciding import corrected
from transect.report.engine.finding import Finding
from transect.report.engine.glossary import glossary_parts
from transect.report.engine.parts import FindingMaker, Section
from transect.report.engine.text import clean, clipped
from transect.stats.comparisons import Confidence

# Characters beside a folded title.
_HINT = 140


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeSection:
    """A section with its body."""

    key: str
    title: str
    body: Body
    printed: bool = False
    group: str = ""

    @property
    def hint(self) -> str:
        """What it says first, on one line: it stands beside the title while it is folded."""
        return clipped(self.body.lead, _HINT)


def make_section(section: Section, context: Context) -> MadeSection | None:
    """Make a section; one that cannot be made says so, and the rest of the report stands. An empty one is not there."""
    try:
        body = Body.of(section.make(context) or ())
    except FAULTS as error:  # whatever a record holds, a report has to come of it
        body = broken(section.key, error, context)
    if body is None or not body.blocks:
        return None
    return MadeSection(key=section.key, title=section.title, body=body, printed=section.printed, group=section.group)


def drawn_out(made: MadeSection, context: Context) -> MadeSection:
    """Wait for the drawings of a section; without one of them it could not be made."""
    try:
        for block in made.body.blocks:
            for chart in block.items if isinstance(block, Charts) else ():
                _ = chart.svg
    except FAULTS as error:  # as for a section
        return replace(made, body=broken(made.key, error, context))
    return made


def broken(key: str, error: BaseException, context: Context) -> Body:
    """Return the body of a section that could not be made, and note the problem."""
    return Body(
        lead="", blocks=[Prose(clean(context.fault(f"section {key}", "this section could not be made", error)))]
    )


def glossary(pages: Sequence[str], context: Context) -> MadeSection | None:
    """Make the last section: the terms that the others use, given as they stand in the page."""
    section = Section(key="glossary", title="Glossary", order=1200, make=lambda _: glossary_parts(pages))
    return make_section(section, context)


def make_findings(context: Context, makers: Iterable[FindingMaker]) -> list[Finding]:
    """Return every finding of a study; a maker that raises leaves a sentence that says so."""
    findings: list[Finding] = []
    for maker in makers:
        try:
            findings += [maker.signed(finding) for finding in maker.make(context)]
        except FAULTS as error:  # as for a section
            name = f"{maker.name} findings".replace("_", " ")
            what = context.fault(name, "could not be made", error)
            findings.append(
                Finding(
                    subject="study",
                    claim=clean(f"{name} {what}."),
                    confidence=Confidence.INCONCLUSIVE,
                    evidence="a fault of the report: the records themselves stand below",
                    kind="report",
                    alarm=True,
                    rule=f"{maker.name}.fault",
                )
            )
    return corrected(findings, context)
