"""The axes of a search for a classifier's knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell
from transect.stages.corpus.cell_text import Corpus, Kind

__all__ = ["SearchCell"]


class SearchCell(Cell):
    """One place of one rung: in rung 0 a drawn point, later the k-th best point of the rung before.

    Which point that is, and from which cell it goes on, stands in the record's details.
    """

    stage: Literal["search"] = "search"
    corpus: Corpus
    # A name of the study's `search.searches`.
    search: Annotated[str, Axis(place=40, name=True)]
    kind: Kind
    rung: Annotated[
        int, Axis(place=120, word=lambda n: f"rung{n}", label=lambda n: f"rung {n}"), Field(ge=0)
    ]
    place: Annotated[
        int, Axis(place=121, word=lambda n: f"place{n}", label=lambda n: f"place {n}"), Field(ge=0)
    ]
