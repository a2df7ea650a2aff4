"""What a report says of conformance: which operator tests runtimes pass, and where they differ."""

from transect.report.findings.conformance import conformance_findings
from transect.report.parts import FindingMaker, Section, StageReport
from transect.report.sections.conformance import conformance_body

REPORT = StageReport(
    sections=(Section(key="conformance", title="Conformance", order=650, make=conformance_body),),
    findings=(FindingMaker(order=750, make=conformance_findings, section="conformance"),),
)
