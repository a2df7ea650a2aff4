"""What a report says of ranks, messages and batches, beside what was published of training in Go."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.ranks.findings import rank_findings
from transect.report.topics.ranks.section import ranks_body

REPORT = StageReport(
    stage="train",
    sections=(Section(key="ranks", title="Ranks, messages and batches", order=346, make=ranks_body),),
    findings=(FindingMaker(name="rank", order=460, make=rank_findings, section="ranks"),),
)
