"""What a report says of trainers in other languages: equal work, and what has to be installed."""

from transect.report.engine.parts import FindingMaker, Section, StageReport
from transect.report.topics.languages.findings import language_findings
from transect.report.topics.languages.section import languages_body

REPORT = StageReport(
    stage="train",
    sections=(Section(key="languages", title="Other languages beside Python", order=150, make=languages_body),),
    findings=(FindingMaker(name="language", order=440, make=language_findings, section="languages"),),
)
