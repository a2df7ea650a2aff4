"""What a report says of tickets: where from, what was rejected, and how their text was prepared."""

from transect.report.findings.tickets import ticket_findings
from transect.report.parts import FindingMaker, Section, StageReport
from transect.report.sections.tickets import tickets_body

REPORT = StageReport(
    sections=(Section(key="tickets", title="Tickets", order=60, make=tickets_body),),
    findings=(FindingMaker(order=80, make=ticket_findings, section="tickets"),),
)
