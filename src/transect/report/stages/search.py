"""What a report says of searches: their points, rung by rung."""

from transect.report.parts import Section, StageReport
from transect.report.sections.searches import searches_body

REPORT = StageReport(sections=(Section(key="searches", title="Searches", order=85, make=searches_body),))
