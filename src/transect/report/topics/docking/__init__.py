"""What a report says of docking: which programming model is fastest, and how far threads help."""

from transect.report.engine.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.topics.docking.findings import docking_findings
from transect.report.topics.docking.section import docking_body

REPORT = StageReport(
    stage="bench",
    sections=(Section(key="docking", title="Docking", order=750, make=docking_body),),
    findings=(FindingMaker(name="docking", order=650, make=docking_findings, section="docking"),),
    decisions=(DecisionColumn(key="dock", title="Dock on this machine", order=600, stage="bench", metric="pose_time"),),
)
