"""The options of format `synthetic`: by what an owner can be recognised, and how clearly."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from transect.text.options import Options

Probability = Annotated[float, Field(ge=0, le=1)]


class SyntheticOptions(Options):
    """All of them; the defaults are a help desk of sixteen."""

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

    @model_validator(mode="after")
    def _has_owners(self) -> SyntheticOptions:
        if self.queues > self.owners:
            raise ValueError(
                f"{self.queues} queues and {self.owners} owners: expected an owner for each queue in `queues`"
            )
        return self
