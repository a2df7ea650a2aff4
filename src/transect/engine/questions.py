"""Checks that the rules and sections that a study's questions name exist in the report."""

from __future__ import annotations

from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.study import Question, Study


def check_questions(study: Study, file: Path) -> None:
    """Raise BadInput for every rule and section that questions name and no part of the report has.

    Imports the report, which takes as long as a plan does: so planning itself does not ask.
    """
    asked = [question for question in study.questions if isinstance(question, Question)]
    if not any(question.answered_by or question.shown_in for question in asked):
        return
    from transect.report.engine.parts import all_parts
    from transect.report.engine.rules import unknown_names

    faults = [f"{file}: question '{ask}': {what}" for ask, what in unknown_names(asked, all_parts())]
    if faults:
        raise BadInput(*faults)
