"""What a report says of ranks that share a model, of overlap, and of training past the memory."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.parallel.exchange import exchange_body, exchange_findings
from transect.report.topics.parallel.memory import memory_body, memory_findings
from transect.report.topics.parallel.pipelines import pipeline_findings, pipelines_body

REPORT = StageReport(
    stage="train",
    sections=(
        Section(key="pipelines", title="Pipelines and hybrids", order=310, make=pipelines_body),
        Section(key="exchange", title="Reduction and overlap", order=320, make=exchange_body),
        Section(key="memory", title="Past the memory", order=330, make=memory_body),
    ),
    findings=(
        FindingMaker(name="pipeline", order=410, make=pipeline_findings, section="pipelines"),
        FindingMaker(name="exchange", order=420, make=exchange_findings, section="exchange"),
        FindingMaker(name="memory", order=430, make=memory_findings, section="memory"),
    ),
)
