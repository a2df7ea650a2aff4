"""What a report says of docking: which programming model is fastest, and how far threads help."""

from transect.report.engine.parts import DecisionColumn, FindingMaker, Section, StageReport
from transect.report.topics.docking.assignment import assignment_body, assignment_findings
from transect.report.topics.docking.findings import docking_findings
from transect.report.topics.docking.section import docking_body

REPORT = StageReport(
    stage="bench",
    sections=(
        Section(key="docking", title="Docking", order=750, make=docking_body),
        Section(key="task-assignment", title="Task assignment and pinned threads", order=751, make=assignment_body),
    ),
    findings=(
        FindingMaker(
            name="docking",
            order=650,
            make=lambda context: [*docking_findings(context), *assignment_findings(context)],
            section="docking",
            sections={"schedule": "task-assignment"},
        ),
    ),
    decisions=(DecisionColumn(key="dock", title="Dock on this machine", order=600, stage="bench", metric="pose_time"),),
)
