"""What a report says of bounds: how near each cell comes to what the hardware allows."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.roofline.findings import bound_findings
from transect.report.topics.roofline.section import roofline_body

REPORT = StageReport(
    sections=(Section(key="roofline", title="Roofline", order=700, make=roofline_body),),
    findings=(FindingMaker(name="bound", order=850, make=bound_findings, section="roofline"),),
)
