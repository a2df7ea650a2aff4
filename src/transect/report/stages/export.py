"""What a report says of exports: whether they compute what their framework does."""

from transect.report.findings.models import export_findings
from transect.report.parts import FindingMaker, Section, StageReport
from transect.report.sections.export import export_body

REPORT = StageReport(
    sections=(Section(key="export", title="Export check", order=500, make=export_body),),
    findings=(FindingMaker(order=600, make=export_findings, section="export"),),
)
