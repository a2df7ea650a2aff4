"""What a report says of searches: their points, rung by rung."""

from transect.report.engine.parts import Section, StageReport
from transect.report.topics.classifiers.searches import searches_body

REPORT = StageReport(
    stage="search", sections=(Section(key="searches", title="Searches", order=344, make=searches_body),)
)
