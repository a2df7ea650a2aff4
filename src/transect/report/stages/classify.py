"""What a report says of classifiers: side by side, by knob, and what is doubtful in a published study."""

from transect.report.findings.classifiers import classifier_findings
from transect.report.findings.doubts import doubt_findings
from transect.report.findings.knobs import knob_findings
from transect.report.parts import FindingMaker, Section, StageReport
from transect.report.sections.classifiers import classifiers_body
from transect.report.sections.doubts import doubts_body
from transect.report.sections.knobs import knobs_body

REPORT = StageReport(
    sections=(
        Section(key="classifiers", title="Classifiers", order=70, make=classifiers_body),
        Section(key="doubts", title="Doubts", order=75, make=doubts_body),
        Section(key="knobs", title="Knobs", order=80, make=knobs_body),
    ),
    findings=(
        FindingMaker(order=60, make=classifier_findings, section="classifiers"),
        FindingMaker(order=65, make=knob_findings, section="knobs"),
        FindingMaker(order=70, make=doubt_findings, section="doubts"),
    ),
)
