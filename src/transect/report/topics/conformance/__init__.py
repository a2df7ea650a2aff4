"""What a report says of conformance: which operator tests runtimes pass, and where they differ."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.conformance.findings import conformance_findings
from transect.report.topics.conformance.section import conformance_body

REPORT = StageReport(
    stage="conformance",
    sections=(Section(key="conformance", title="Conformance", order=650, make=conformance_body),),
    findings=(FindingMaker(name="conformance", order=750, make=conformance_findings, section="conformance"),),
)
