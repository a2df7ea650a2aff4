"""What a report says of inference: who answers first, what a call costs, were conditions equal."""

from transect.analysis.serving import identity_size
from transect.domain.cell import Cell
from transect.report.engine.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.topics.serving.conditions import condition_findings
from transect.report.topics.serving.findings import serving_findings
from transect.report.topics.serving.load import offered_load_findings
from transect.report.topics.serving.overhead import overhead_findings
from transect.report.topics.serving.runtime_findings import runtime_findings
from transect.report.topics.serving.section import runtimes_body


def _asked(cell: Cell) -> bool:
    """Whether it calls a model that computes something, one call after another."""
    alone = cell.get("load") is None and cell.get("sessions", 1) == 1
    return alone and identity_size(cell.workload or "") is None


REPORT = StageReport(
    stage="infer",
    sections=(Section(key="runtimes", title="Runtimes", order=600, make=runtimes_body),),
    findings=(
        FindingMaker(name="serving", order=700, make=serving_findings, section="runtimes"),
        FindingMaker(name="offered_load", order=705, make=offered_load_findings, section="runtimes"),
        FindingMaker(name="runtime", order=710, make=runtime_findings, section="runtimes"),
        FindingMaker(name="overhead", order=720, make=overhead_findings, section="runtimes"),
        FindingMaker(name="condition", order=730, make=condition_findings, section="runtimes"),
    ),
    decisions=(
        DecisionColumn(
            key="serve-one",
            title="Serve one request (SingleStream)",
            order=300,
            stage="infer",
            metric="latency",
            always=True,
            asks=_asked,
        ),
        DecisionColumn(
            key="serve-many",
            title="Serve many (Offline)",
            order=400,
            stage="infer",
            metric="throughput",
            always=True,
            asks=lambda cell: _asked(cell) and cell.get("batch", 1) > 1,
        ),
    ),
)
