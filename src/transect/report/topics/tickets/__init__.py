"""What a report says of tickets: where from, what was rejected, and how their text was prepared."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.tickets.findings import ticket_findings
from transect.report.topics.tickets.section import tickets_body

REPORT = StageReport(
    stage="corpus",
    sections=(Section(key="tickets", title="Tickets", order=60, make=tickets_body),),
    findings=(FindingMaker(name="ticket", order=80, make=ticket_findings, section="tickets"),),
)
