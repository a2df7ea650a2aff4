"""What a report says of frameworks side by side: what distribution and input cost."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.distribution.costs import distribution_findings
from transect.report.topics.distribution.frameworks import frameworks_body
from transect.report.topics.distribution.twins import twin_findings

REPORT = StageReport(
    stage="train",
    sections=(Section(key="frameworks", title="Frameworks side by side", order=100, make=frameworks_body),),
    findings=(
        FindingMaker(name="distribution", order=200, make=distribution_findings, section="frameworks"),
        FindingMaker(name="twin", order=300, make=twin_findings, section="frameworks"),
    ),
)
