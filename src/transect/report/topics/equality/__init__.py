"""What a report says of right results: every trainer follows the reference."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.equality.findings import equality_findings
from transect.report.topics.equality.section import equality_body

REPORT = StageReport(
    stage="train",
    sections=(Section(key="equality", title="Equality of the trainers", order=400, make=equality_body),),
    findings=(FindingMaker(name="equality", order=500, make=equality_findings, section="equality"),),
)
