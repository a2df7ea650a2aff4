"""What a report says of inference: who answers first, what a call costs, were conditions equal."""

from transect.analysis.serving import identity_size
from transect.domain.cell import Cell
from transect.report.findings.conditions import condition_findings
from transect.report.findings.offered_load import offered_load_findings
from transect.report.findings.overhead import overhead_findings
from transect.report.findings.runtimes import runtime_findings
from transect.report.findings.serving import serving_findings
from transect.report.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.sections.runtimes import runtimes_body


def _asked(cell: Cell) -> bool:
    """Whether it calls a model that computes something, one call after another."""
    alone = cell.get("load") is None and cell.get("sessions", 1) == 1
    return alone and identity_size(cell.workload or "") is None


REPORT = StageReport(
    sections=(Section(key="runtimes", title="Runtimes", order=600, make=runtimes_body),),
    findings=(
        FindingMaker(order=700, make=serving_findings, section="runtimes"),
        FindingMaker(order=705, make=offered_load_findings, section="runtimes"),
        FindingMaker(order=710, make=runtime_findings, section="runtimes"),
        FindingMaker(order=720, make=overhead_findings, section="runtimes"),
        FindingMaker(order=730, make=condition_findings, section="runtimes"),
    ),
    decisions=(
        DecisionColumn(
            key="serve-one",
            title="Serve one request (SingleStream)",
            order=300,
            stage="infer",
            always=True,
            asks=_asked,
        ),
        DecisionColumn(
            key="serve-many", title="Serve many (Offline)", order=400, stage="infer", always=True, asks=_asked
        ),
    ),
)
