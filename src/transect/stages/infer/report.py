"""What a report says of inference: which runtime answers first, and which serves most."""

from transect.report.findings.serving import serving_findings
from transect.report.parts import FindingMaker, Section
from transect.report.sections.runtimes import runtimes_body

__all__ = ["FINDINGS", "SECTIONS"]

SECTIONS = (Section(key="runtimes", title="Runtimes", order=600, make=runtimes_body),)

FINDINGS = (FindingMaker(order=700, make=serving_findings),)
