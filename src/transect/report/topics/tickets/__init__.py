"""What a report says of tickets: where from, what was rejected, and how their text was prepared."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.tickets.texts import ticket_findings, tickets_body

REPORT = StageReport(
    stage="corpus",
    sections=(Section(key="tickets", title="Tickets", order=340, make=tickets_body),),
    findings=(FindingMaker(name="ticket", order=80, make=ticket_findings, section="tickets"),),
)
