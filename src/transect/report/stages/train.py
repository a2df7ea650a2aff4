"""What a report says of training: speed, its limits, what distribution costs, right results."""

from transect.report.findings.asynchronous import asynchronous_findings
from transect.report.findings.claims import claim_findings
from transect.report.findings.communication import communication_findings
from transect.report.findings.distribution import distribution_findings
from transect.report.findings.equality import equality_findings
from transect.report.findings.languages import language_findings
from transect.report.findings.parallel import exchange_findings, memory_findings, pipeline_findings
from transect.report.findings.ranks import rank_findings
from transect.report.findings.training import training_findings
from transect.report.findings.twins import twin_findings
from transect.report.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.sections.asynchronous import asynchronous_body
from transect.report.sections.claims import claims_body
from transect.report.sections.communication import communication_body
from transect.report.sections.equality import equality_body
from transect.report.sections.exchange import exchange_body
from transect.report.sections.frameworks import frameworks_body
from transect.report.sections.hyperparameters import hyperparameters_body
from transect.report.sections.languages import languages_body
from transect.report.sections.out_of_core import out_of_core_body
from transect.report.sections.pipelines import pipelines_body
from transect.report.sections.ranks import ranks_body
from transect.report.sections.scaling import scaling_body
from transect.report.sections.speed import speed_body

REPORT = StageReport(
    sections=(
        Section(key="frameworks", title="Frameworks side by side", order=100, make=frameworks_body),
        Section(key="languages", title="Other languages beside Python", order=150, make=languages_body),
        Section(key="speed", title="Time to quality and speed", order=200, make=speed_body),
        Section(key="scaling", title="Scaling", order=210, make=scaling_body),
        Section(key="communication", title="Communication", order=300, make=communication_body),
        Section(key="pipelines", title="Pipelines and hybrids", order=310, make=pipelines_body),
        Section(key="exchange", title="Reduction and overlap", order=320, make=exchange_body),
        Section(key="memory", title="Past the memory", order=330, make=out_of_core_body),
        Section(key="asynchronous", title="Asynchronous updates", order=335, make=asynchronous_body),
        Section(key="claims", title="Published claims", order=345, make=claims_body),
        Section(key="ranks", title="Ranks, messages and batches", order=346, make=ranks_body),
        Section(key="hyperparameters", title="Hyper-parameters", order=350, make=hyperparameters_body),
        Section(key="equality", title="Equality of the trainers", order=400, make=equality_body),
    ),
    findings=(
        FindingMaker(
            order=100,
            make=training_findings,
            section="speed",
            sections={"limit": "roofline", "scaling": "scaling", "suspect": "scaling"},
        ),
        FindingMaker(order=200, make=distribution_findings, section="frameworks"),
        FindingMaker(order=300, make=twin_findings, section="frameworks"),
        FindingMaker(order=400, make=communication_findings, section="communication"),
        FindingMaker(order=410, make=pipeline_findings, section="pipelines"),
        FindingMaker(order=420, make=exchange_findings, section="exchange"),
        FindingMaker(order=430, make=memory_findings, section="memory"),
        FindingMaker(order=435, make=asynchronous_findings, section="asynchronous"),
        FindingMaker(order=450, make=claim_findings, section="claims"),
        FindingMaker(order=440, make=language_findings, section="languages"),
        FindingMaker(order=460, make=rank_findings, section="ranks"),
        FindingMaker(order=500, make=equality_findings, section="equality"),
    ),
    decisions=(
        DecisionColumn(key="train", title="Train on this machine", order=100, stage="train", always=True),
        DecisionColumn(
            key="scale",
            title="Scale to more ranks",
            order=200,
            stage="train",
            always=True,
            asks=lambda cell: cell.ranks > 1,
        ),
    ),
)
