"""What a report says of published claims."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.claims.findings import claim_findings, claims_body

REPORT = StageReport(
    sections=(Section(key="claims", title="Published and measured", order=345, make=claims_body),),
    findings=(FindingMaker(name="claim", order=450, make=claim_findings, section="claims"),),
)
