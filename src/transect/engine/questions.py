"""Holds what a study's questions name to what its report can say."""

from __future__ import annotations

from pathlib import Path

from transect.domain.errors import BadInput
from transect.domain.study import Question, Study


def check_questions(study: Study, file: Path) -> None:
    """Raise BadInput for every rule and section that questions name and no part of the report has.

    Imports the report, which takes as long as a plan does: so planning itself does not ask.
    """
    asked = [one for one in study.questions if isinstance(one, Question)]
    if not any(one.answered_by or one.shown_in for one in asked):
        return
    from transect.report.collect import all_parts
    from transect.report.rules import unknown_names

    told = [f"{file}: question '{ask}': {what}" for ask, what in unknown_names(asked, all_parts())]
    if told:
        raise BadInput(*told)
