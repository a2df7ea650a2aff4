"""How long a study goes on measuring: until its pairs are told apart or the same, and what the same means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator

from transect.domain.pairs import Pair

# Two groups within a twentieth of each other are the same, unless a study says otherwise.
MARGIN = 0.05
# Runs a side below which no verdict is confirmed: two tell no outlier from the rest.
MIN_RUNS = 3
# Another number of repeats at which runners stop would read as if there were no end.
MAX_REPEATS = 1000


def share_of(value: object) -> float:
    """Return the share that `5 %` is; a bare number does not tell per cent from shares. Raises ValueError."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", value) if isinstance(value, str) else None
    share = float(found[1]) / 100 if found else 0.0
    if not 0 < share < 1:
        raise ValueError("expected more than 0 and less than 100 per cent, written as '5 %'")
    return share


# A share, written in per cent.
Percent = Annotated[
    float,
    BeforeValidator(lambda value: None if value is None else share_of(value)),
    PlainSerializer(lambda share: None if share is None else f"{100 * share:g} %"),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?%$"}),
]


class RepeatUntil(BaseModel):
    """When the repeats of a cell are enough: whichever of these comes first."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    ci_half_width: Percent | None = Field(
        default=None,
        description="enough when the 95 % interval of a cell's middle reaches no farther than this to either side, "
        "such as `3 %`",
    )
    equivalence_margin: Percent | None = Field(
        default=None,
        description="enough when the interval of each pair of a cell tells the same within this margin, such as `5 %`, "
        "from different",
    )
    min_repeats: int | None = Field(default=None, ge=2, description="least repeats of each cell; null: its `repeats`")
    max_repeats: int = Field(default=10, ge=3, le=MAX_REPEATS, description="most repeats of each cell")
    budget_minutes: float | None = Field(
        default=None,
        gt=0,
        description="time that a block's repeats beyond `min_repeats` may take, with what only they need: none begins after "
        "it; null: as long as it takes",
    )

    @model_validator(mode="after")
    def _says_enough(self) -> RepeatUntil:
        if self.ci_half_width is None and self.equivalence_margin is None:
            raise ValueError("has no stopping criterion: expected ci_half_width, equivalence_margin or both")
        if self.min_repeats is not None and self.max_repeats <= self.min_repeats:
            raise ValueError(
                f"max_repeats {self.max_repeats} leaves nothing beyond min_repeats {self.min_repeats}: expected more"
            )
        return self


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisPlan:
    """What a study wants to know, for its report: the margin, and which pairs it compares."""

    margin: float = MARGIN
    pairs: tuple[Pair, ...] = ()

    def stored(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"margin": self.margin, "pairs": [pair.stored() for pair in self.pairs]}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> AnalysisPlan:
        """Make the one that was stored; of a plan of before 2026-11-26, which has no pairs, the margin."""
        pairs = tuple(map(Pair.of, stored.get("pairs", ())))
        return cls(margin=float(stored.get("margin", MARGIN)), pairs=pairs)
