"""What a report says of the hardware: what it gives, and how near cells come to it."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.hardware.findings import hardware_findings
from transect.report.topics.hardware.races import system_findings
from transect.report.topics.hardware.section import hardware_body
from transect.report.topics.hardware.storage import storage_findings

REPORT = StageReport(
    stage="bench",
    sections=(Section(key="hardware", title="Hardware", order=800, make=hardware_body),),
    findings=(
        FindingMaker(
            name="hardware", order=800, make=hardware_findings, section="hardware", sections={"limit": "roofline"}
        ),
        FindingMaker(name="storage", order=805, make=storage_findings, section="hardware"),
        FindingMaker(name="system", order=810, make=system_findings, section="hardware"),
    ),
)
