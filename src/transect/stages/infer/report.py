"""What a report says of inference: who answers first, what a call costs, were conditions equal."""

from transect.report.findings.conditions import condition_findings
from transect.report.findings.offered_load import offered_load_findings
from transect.report.findings.overhead import overhead_findings
from transect.report.findings.runtimes import runtime_findings
from transect.report.findings.serving import serving_findings
from transect.report.parts import FindingMaker, Section
from transect.report.sections.runtimes import runtimes_body

__all__ = ["FINDINGS", "SECTIONS"]

SECTIONS = (Section(key="runtimes", title="Runtimes", order=600, make=runtimes_body),)

FINDINGS = (
    FindingMaker(order=700, make=serving_findings),
    FindingMaker(order=705, make=offered_load_findings),
    FindingMaker(order=710, make=runtime_findings),
    FindingMaker(order=720, make=overhead_findings),
    FindingMaker(order=730, make=condition_findings),
)
