"""What a report says of retraining: who computes the path and how fast, and what a gain is due to."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.retraining.factors import factor_findings
from transect.report.topics.retraining.findings import retraining_findings
from transect.report.topics.retraining.section import retraining_body

REPORT = StageReport(
    stage="retrain",
    sections=(Section(key="retraining", title="Retraining", order=660, make=retraining_body),),
    findings=(
        FindingMaker(name="factor", order=760, make=factor_findings, section="retraining"),
        FindingMaker(name="retraining", order=765, make=retraining_findings, section="retraining"),
    ),
)
