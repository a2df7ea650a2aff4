"""What a report says of classifiers: side by side, by hyper-parameter, and what is doubtful in a published study."""

from transect.report.findings.classifier_hyperparameters import hyperparameter_findings
from transect.report.findings.classifiers import classifier_findings
from transect.report.findings.doubts import doubt_findings
from transect.report.parts import FindingMaker, Section, StageReport
from transect.report.sections.classifier_hyperparameters import hyperparameters_body
from transect.report.sections.classifiers import classifiers_body
from transect.report.sections.doubts import doubts_body

REPORT = StageReport(
    sections=(
        Section(key="classifiers", title="Classifiers", order=70, make=classifiers_body),
        Section(key="doubts", title="Doubts", order=75, make=doubts_body),
        Section(
            key="classifier-hyperparameters", title="Classifier hyper-parameters", order=80, make=hyperparameters_body
        ),
    ),
    findings=(
        FindingMaker(order=60, make=classifier_findings, section="classifiers"),
        FindingMaker(order=65, make=hyperparameter_findings, section="classifier-hyperparameters"),
        FindingMaker(order=70, make=doubt_findings, section="doubts"),
    ),
)
