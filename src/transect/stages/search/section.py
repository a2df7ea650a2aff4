"""The section of a study that searches for the knobs of classifiers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from transect.domain.study import Count, Counts, Names, Section

Rate = Annotated[float, Field(gt=0)]


class RateRange(Section):
    """Learning rates from `low` to `high`, all orders of magnitude alike."""

    low: Rate = Field(description="the smallest")
    high: Rate = Field(description="the largest")

    @model_validator(mode="after")
    def _is_a_range(self) -> RateRange:
        if self.low >= self.high:
            raise ValueError(f"low is {self.low:g}: expected less than high, {self.high:g}")
        return self


class SpaceRule(Section):
    """The points that a search draws from; a knob without a list stays the classifier's own."""

    learning_rates: RateRange | Annotated[list[Rate], Field(min_length=1)] | None = Field(
        default=None, description="a list, or `{low: …, high: …}`, drawn evenly in its logarithm"
    )
    batches: Counts | None = Field(default=None, description="tickets in a batch")
    optimisers: Names | None = Field(default=None, description="a file of `src/transect/training/optimisers` each")
    heads: Counts | None = Field(default=None, description="of attention")
    layers: Counts | None = Field(default=None, description="of the encoder")


class SearchRule(Section):
    """Successive halving: many points for few epochs, and of these the best ones for more.

    K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
    AISTATS 2016.
    """

    corpora: Names = Field(description="names from `tickets.corpora`, each searched for itself")
    view: Literal["conversation", "first"] = Field(default="conversation", description="all messages, or the first one")
    names: Literal["kept", "pseudonyms", "removed"] = Field(default="pseudonyms", description="of people, in texts")
    stop_words: bool = Field(default=False, description="true: they stay in the text")
    partition: str = Field(
        description="a name from `tickets.partitions`; its share `valid` says which points are the best"
    )
    vectors: str = Field(description="a name from `tickets.vectors`")
    words: str = Field(default="quantile", description="a name from `tickets.lengths`")
    model: str = Field(description="a name from `classify.models`")
    space: SpaceRule = Field(description="the points to draw from, see below")
    budget: Count = Field(
        description="epochs of all cells of a corpus together; as many points are drawn as it pays for"
    )
    epochs: Count = Field(default=2, description="epochs of each cell of rung 0")
    keep: int = Field(
        default=3,
        ge=2,
        description="one of so many places goes on to the next rung, up to so many times as many epochs",
    )
    rungs: Count = Field(default=3, description="how often the best are taken, and once for all")
    device: Literal["cpu", "cuda"] = Field(default="cpu", description="where it is trained")
    threads: Count = Field(default=1, description="of each cell")


class SearchSection(Section):
    """Searches for the knobs of classifiers."""

    searches: dict[str, SearchRule] = Field(default={}, description="searches by name, see below")
