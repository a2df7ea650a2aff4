"""What a report says of predictions: how far off they were, and the curve that nobody has measured."""

from transect.report.findings.forecasts import forecast_findings
from transect.report.parts import FindingMaker, Section
from transect.report.sections.forecasts import forecast_body

SECTIONS = (Section(key="forecasts", title="Predicted and measured", order=340, make=forecast_body),)

FINDINGS = (FindingMaker(order=440, make=forecast_findings, section="forecasts"),)
