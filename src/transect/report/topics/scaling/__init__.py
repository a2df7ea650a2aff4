"""What a report says of more ranks: speed, efficiency, and what is behind one above 100 %."""

from transect.report.engine.parts import Section, StageReport
from transect.report.topics.scaling.section import scaling_body

REPORT = StageReport(stage="train", sections=(Section(key="scaling", title="Scaling", order=210, make=scaling_body),))
