"""What a report says of federated learning: whether simulations are right, what is learned, and who computes it."""

from transect.report.engine.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.topics.federated.facts import ROUND
from transect.report.topics.federated.findings import federated_findings
from transect.report.topics.federated.section import federated_body

REPORT = StageReport(
    stage="federate",
    sections=(Section(key="federated", title="Federated learning", order=490, make=federated_body),),
    findings=(FindingMaker(name="federated", order=450, make=federated_findings, section="federated"),),
    decisions=(
        DecisionColumn(key="aggregation", title="Learn together by", order=150, stage="federate", metric="accuracy"),
        DecisionColumn(key="engine", title="Learn together with", order=155, stage="federate", metric=ROUND),
    ),
)
