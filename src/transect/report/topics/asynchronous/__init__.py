"""What a report says of asynchronous updates."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.asynchronous.findings import asynchronous_findings
from transect.report.topics.asynchronous.section import asynchronous_body

REPORT = StageReport(
    stage="train",
    sections=(Section(key="asynchronous", title="Asynchronous updates", order=335, make=asynchronous_body),),
    findings=(FindingMaker(name="asynchronous", order=435, make=asynchronous_findings, section="asynchronous"),),
)
