"""What a report says of training: speed, its limits, what distribution costs, right results."""

from transect.report.findings.communication import communication_findings
from transect.report.findings.distribution import distribution_findings
from transect.report.findings.equality import equality_findings
from transect.report.findings.training import training_findings
from transect.report.findings.twins import twin_findings
from transect.report.parts import FindingMaker, Section
from transect.report.sections.communication import communication_body
from transect.report.sections.equality import equality_body
from transect.report.sections.frameworks import frameworks_body
from transect.report.sections.hyperparameters import hyperparameters_body
from transect.report.sections.speed import speed_body

__all__ = ["FINDINGS", "SECTIONS"]

SECTIONS = (
    Section(key="frameworks", title="Frameworks side by side", order=100, make=frameworks_body),
    Section(key="speed", title="Speed and scaling", order=200, make=speed_body),
    Section(key="communication", title="Communication", order=300, make=communication_body),
    Section(key="hyperparameters", title="Hyper-parameters", order=350, make=hyperparameters_body),
    Section(key="equality", title="Equality of the trainers", order=400, make=equality_body),
)

FINDINGS = (
    FindingMaker(order=100, make=training_findings),
    FindingMaker(order=200, make=distribution_findings),
    FindingMaker(order=300, make=twin_findings),
    FindingMaker(order=400, make=communication_findings),
    FindingMaker(order=500, make=equality_findings),
)
