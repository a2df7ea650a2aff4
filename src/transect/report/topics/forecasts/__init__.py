"""What a report says of predictions: how far off they were, and the curve that nobody has measured."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.forecasts.findings import forecast_findings
from transect.report.topics.forecasts.section import forecast_body

REPORT = StageReport(
    stage="forecast",
    sections=(Section(key="forecasts", title="Predicted and measured", order=340, make=forecast_body),),
    findings=(FindingMaker(name="forecast", order=440, make=forecast_findings, section="forecasts"),),
)
