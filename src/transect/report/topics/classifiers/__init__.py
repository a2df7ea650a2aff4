"""What a report says of classifiers: side by side, by hyper-parameter, and what is doubtful in a published study."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.classifiers.doubts import doubt_findings, doubts_body
from transect.report.topics.classifiers.findings import classifier_findings
from transect.report.topics.classifiers.hyperparameters import hyperparameter_findings, hyperparameters_body
from transect.report.topics.classifiers.section import classifiers_body

REPORT = StageReport(
    stage="classify",
    sections=(
        Section(key="classifiers", title="Classifiers", order=341, make=classifiers_body),
        Section(key="doubts", title="Doubts", order=342, make=doubts_body),
        Section(
            key="classifier-hyperparameters", title="Classifier hyper-parameters", order=343, make=hyperparameters_body
        ),
    ),
    findings=(
        FindingMaker(name="classifier", order=60, make=classifier_findings, section="classifiers"),
        FindingMaker(
            name="hyperparameter", order=65, make=hyperparameter_findings, section="classifier-hyperparameters"
        ),
        FindingMaker(name="doubt", order=70, make=doubt_findings, section="doubts"),
    ),
)
