"""What a report shows of the whole study at a glance: who is first, every comparison, and how it ran."""

from transect.report.engine.parts import Section, StageReport
from transect.report.topics.pictures.front import front_body
from transect.report.topics.pictures.section import pictures_body

REPORT = StageReport(
    sections=(
        Section(key="picture", title="At a glance", order=10, make=front_body, front=True),
        Section(key="pictures", title="The study in pictures", order=20, make=pictures_body, printed=True),
    )
)
