"""What a report says of exports: whether they compute what their framework does."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.exports.findings import export_findings
from transect.report.topics.exports.section import export_body

REPORT = StageReport(
    stage="export",
    sections=(Section(key="export", title="Export check", order=500, make=export_body),),
    findings=(FindingMaker(name="export", order=600, make=export_findings, section="export"),),
)
