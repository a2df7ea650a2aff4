"""What a report says of messages: their share, and the bound of the network."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.communication.findings import communication_findings
from transect.report.topics.communication.section import communication_body

REPORT = StageReport(
    stage="train",
    sections=(Section(key="communication", title="Communication", order=300, make=communication_body),),
    findings=(FindingMaker(name="communication", order=400, make=communication_findings, section="communication"),),
)
