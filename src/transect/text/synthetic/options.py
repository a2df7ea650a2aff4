"""The options of format `synthetic`: what tells an owner, and how clearly."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transect.domain.errors import BadInput

Probability = Annotated[float, Field(ge=0, le=1)]


class SyntheticOptions(BaseModel):
    """All of them; the defaults are a help desk of sixteen."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    tickets: int = Field(default=2000, ge=1, le=100_000_000, description="how many")
    owners: int = Field(default=16, ge=2, le=144, description="people who own tickets")
    queues: int = Field(default=8, ge=1, le=8, description="topics, and queues, over which owners are spread")
    skew: float = Field(default=0.5, ge=0, le=3, description="the k-th owner has a share of 1 / k^skew; 0: all alike")
    focus: Probability = Field(
        default=0.7, description="share of tickets on the topic of their owner's queue; others: any"
    )
    strength: Probability = Field(
        default=0.5, description="share of its words that an owner chooses by habit; others: any"
    )
    signed: Probability = Field(default=0.8, description="share of tickets whose replies end with their writer's name")
    stand_in: Probability = Field(
        default=0.1, description="share of tickets that another person answers for their owner"
    )
    addressed: Probability = Field(default=0.1, description="share of first questions that name the owner")
    drift: Probability = Field(default=0.0, description="share of habits that change half-way through the time")
    german: Probability = Field(default=0.5, description="share of German tickets; others: English")
    follow_ups: int = Field(
        default=2, ge=0, le=4, description="most questions after the first; as many tickets of each number"
    )


def options_of(given: dict[str, Any], where: str) -> SyntheticOptions:
    """Return the options. Raises BadInput, beginning with `where`, for those that cannot be used."""
    try:
        options = SyntheticOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join([where, *map(str, first["loc"])])
        known = ", ".join(SyntheticOptions.model_fields)
        raise BadInput(f"{key}: {first['msg']}, given {first['input']!r}. Known options: {known}") from None
    if options.queues > options.owners:
        raise BadInput(
            f"{where}.queues: {options.queues} queues and {options.owners} owners: expected an owner for each queue"
        )
    return options
