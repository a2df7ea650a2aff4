"""How long a study goes on measuring: it repeats until its comparisons are decided, and what decided means."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator

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
        description="enough when all comparisons of a cell are decided: different, or the same within this margin, "
        "such as `5 %`",
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


def looks_of(min_repeats: int, max_repeats: int) -> list[int]:
    """Return the numbers of repeats at which one looks whether to go on, `min_repeats` to `max_repeats`.

    Each look may be wrong, so they are few: half as many repeats again from one to the next.

    >>> looks_of(3, 10)
    [3, 5, 8, 10]
    >>> looks_of(3, 3)
    [3]
    """
    looks = [min_repeats]
    while looks[-1] < max_repeats:
        looks.append(min(max_repeats, math.ceil(1.5 * looks[-1])))
    return looks


def decisive_looks(min_repeats: int, max_repeats: int) -> int:
    """Return at how many of those looks a verdict may be confirmed, and so be wrong.

    >>> decisive_looks(2, 10)
    4
    """
    return sum(look >= MIN_RUNS for look in looks_of(min_repeats, max_repeats))


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonRule:
    """What decides among cells of a stage: each is compared with the best, metric by metric.

    `paired_metrics` are those of which a repeat's seed changes all cells, compared seed by seed. Those of speed,
    `metrics`, decide where there is none, or where input is synthetic and there is nothing to learn. Cells of another
    workload, kind or value of `stratify_by` are not compared. With `best_of`, axes, only the best cell of each of their
    values is, as where the best of each runtime races. `also` is another rule for the same cells.
    """

    metrics: tuple[str, ...] = ()
    paired_metrics: tuple[str, ...] = ()
    stratify_by: tuple[str, ...] = ()
    best_of: tuple[str, ...] = ()
    also: ComparisonRule | None = None

    def each(self) -> list[ComparisonRule]:
        """Return it and those that hold also."""
        return [self, *(self.also.each() if self.also is not None else ())]

    def stored(self) -> list[dict[str, list[str]]]:
        """Return it and those that hold also, as JSON holds them."""
        return [
            {
                "metrics": [*rule.metrics],
                "paired_metrics": [*rule.paired_metrics],
                "stratify_by": [*rule.stratify_by],
                "best_of": [*rule.best_of],
            }
            for rule in self.each()
        ]

    @classmethod
    def of(cls, stored: Sequence[Mapping[str, Sequence[str]]]) -> ComparisonRule:
        """Make the one that was stored."""
        first, *rest = stored
        kept = {key: tuple(names) for key, names in first.items()}
        return cls(**kept, also=cls.of(rest) if rest else None)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisPlan:
    """What a study wants to know, for its report: the margin, and how often a stage's runner looks."""

    margin: float = MARGIN
    looks: Mapping[str, int] = field(default_factory=dict)

    def interim_looks(self, stage: str) -> int:
        """Return how often the repeats of a stage's cells are looked at; 1 where nobody goes on."""
        return self.looks.get(stage, 1)

    def stored(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self) | {"looks": dict(self.looks)}
