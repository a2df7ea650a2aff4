"""What a report says of predictions: how far off they were, and the curve that nobody has measured."""

from transect.report.findings.forecasts import forecast_findings
from transect.report.parts import FindingMaker, Section, StageReport
from transect.report.sections.forecasts import forecast_body

REPORT = StageReport(
    sections=(Section(key="forecasts", title="Predicted and measured", order=340, make=forecast_body),),
    findings=(FindingMaker(order=440, make=forecast_findings, section="forecasts"),),
)
