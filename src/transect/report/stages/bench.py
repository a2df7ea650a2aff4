"""What a report says of benchmarks, run here or read from logs: what the hardware gives."""

from transect.report.findings.docking import docking_findings
from transect.report.findings.hardware import hardware_findings
from transect.report.findings.systems import system_findings
from transect.report.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.sections.docking import docking_body
from transect.report.sections.hardware import hardware_body

REPORT = StageReport(
    sections=(
        Section(key="docking", title="Docking", order=650, make=docking_body),
        Section(key="hardware", title="Hardware", order=800, make=hardware_body),
    ),
    findings=(
        FindingMaker(order=650, make=docking_findings, section="docking"),
        FindingMaker(order=800, make=hardware_findings, section="hardware", sections={"limit": "roofline"}),
        FindingMaker(order=810, make=system_findings, section="hardware"),
    ),
    decisions=(DecisionColumn(key="dock", title="Dock on this machine", order=600, stage="bench"),),
)
