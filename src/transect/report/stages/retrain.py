"""What a report says of retraining: who computes the path and how fast, and what a gain is due to."""

from transect.report.findings.retrain_factors import factor_findings
from transect.report.findings.retraining import retraining_findings
from transect.report.parts import FindingMaker, Section, StageReport
from transect.report.sections.retraining import retraining_body

REPORT = StageReport(
    sections=(Section(key="retraining", title="Retraining", order=660, make=retraining_body),),
    findings=(
        FindingMaker(order=760, make=factor_findings, section="retraining"),
        FindingMaker(order=765, make=retraining_findings, section="retraining"),
    ),
)
