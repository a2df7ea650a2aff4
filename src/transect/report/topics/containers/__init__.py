"""What a report says of containers: what they cost, and what was published."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.containers.findings import container_findings
from transect.report.topics.containers.section import containers_body

REPORT = StageReport(
    sections=(Section(key="containers", title="Containers", order=650, make=containers_body),),
    findings=(FindingMaker(name="container", order=840, make=container_findings, section="containers"),),
)
