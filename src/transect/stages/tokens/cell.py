"""The axes of tokenising."""

from __future__ import annotations

from typing import Literal

from transect.stages.corpus.cell_text import WordsAxes

__all__ = ["TokensCell"]


class TokensCell(WordsAxes):
    """The words of each text, without stop words unless they stay."""

    stage: Literal["tokens"] = "tokens"
