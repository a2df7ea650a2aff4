"""What a report says of retraining: who computes the path and how fast, and what a gain is due to."""

from transect.report.findings.retrain_factors import factor_findings
from transect.report.findings.retraining import retraining_findings
from transect.report.parts import FindingMaker, Section
from transect.report.sections.retraining import retraining_body

SECTIONS = (Section(key="retraining", title="Retraining", order=660, make=retraining_body),)

FINDINGS = (
    FindingMaker(order=760, make=factor_findings, section="retraining"),
    FindingMaker(order=765, make=retraining_findings, section="retraining"),
)
