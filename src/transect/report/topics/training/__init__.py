"""What a report says of training: who is first to the quality, and what limits it."""

from transect.report.engine.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.topics.training.findings import training_findings
from transect.report.topics.training.hyperparameters import hyperparameters_body
from transect.report.topics.training.speed import speed_body

REPORT = StageReport(
    stage="train",
    sections=(
        Section(key="speed", title="Training speed", order=200, make=speed_body),
        Section(key="hyperparameters", title="Hyper-parameters", order=348, make=hyperparameters_body),
    ),
    findings=(
        FindingMaker(
            name="training",
            order=100,
            make=training_findings,
            section="speed",
            sections={"limit": "roofline", "scaling": "scaling"},
        ),
    ),
    decisions=(
        DecisionColumn(
            key="train", title="Train on this machine", order=100, stage="train", metric="time_to_quality", always=True
        ),
        DecisionColumn(
            key="scale",
            title="Scale to more ranks",
            order=200,
            stage="train",
            metric="samples_per_second",
            always=True,
            asks=lambda cell: cell.ranks > 1,
        ),
    ),
)
