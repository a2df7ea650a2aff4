"""The axes of dialogue extraction."""

from __future__ import annotations

from typing import Literal

from transect.stages.corpus.cell_text import ViewAxes

__all__ = ["DialogueCell"]


class DialogueCell(ViewAxes):
    """What is read of each ticket of a corpus, as one text."""

    stage: Literal["dialogue"] = "dialogue"
