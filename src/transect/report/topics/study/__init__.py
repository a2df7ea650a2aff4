"""What a report says of the study itself: failures, noise, the machine, the methods."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.study.coverage import coverage_findings
from transect.report.topics.study.energy import energy_findings
from transect.report.topics.study.failures import failures_body
from transect.report.topics.study.methods import methods_body
from transect.report.topics.study.others import others_body
from transect.report.topics.study.provenance import provenance_body

REPORT = StageReport(
    sections=(
        Section(key="failures", title="Failures and skips", order=0, make=failures_body, last=True),
        Section(key="others", title="Other stages", order=950, make=others_body),
        Section(key="provenance", title="Environment", order=1000, make=provenance_body),
        Section(key="methods", title="Methods", order=1100, make=methods_body),
    ),
    findings=(
        FindingMaker(name="energy", order=880, make=energy_findings, section="speed"),
        FindingMaker(
            name="coverage", order=900, make=coverage_findings, section="failures", sections={"noise": "methods"}
        ),
    ),
)
