"""The section of a study that asks for classifiers of tickets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.study import Count, Counts, Names, Section

Rate = Annotated[float, Field(gt=0)]


class ClassifierRule(Section):
    """A classifier with what is not varied in grids."""

    kind: str = Field(description="a name from [plugins.md](plugins.md#classifier)")
    options: dict[str, Any] = Field(default={}, description="of the classifier")


class TextGrid(Section):
    """Which encoded tickets: the cross product of its lists."""

    corpora: Names = Field(description="names from `tickets.corpora`")
    views: list[Literal["conversation", "first"]] = Field(
        default=["conversation"], min_length=1, description="all messages, or the first one"
    )
    names: list[Literal["kept", "pseudonyms", "removed"]] = Field(
        default=["pseudonyms"],
        min_length=1,
        description="of people, in texts; `kept` needs a corpus with `redact: false`",
    )
    stop_words: list[bool] = Field(default=[False], min_length=1, description="true: they stay in the text")
    partitions: Names = Field(description="names from `tickets.partitions`")
    vectors: Names = Field(description="names from `tickets.vectors`")
    words: Names = Field(default=["quantile"], description="names from `tickets.lengths`")


class ClassifyGrid(TextGrid):
    """The cross product of its lists; a list for a knob that a classifier lacks does not multiply it."""

    models: Names = Field(description="names from `classify.models`")
    epochs: Counts | None = Field(default=None, description="passes over the training part; null: the classifier's own")
    updates: Counts | None = Field(default=None, description="steps, in the place of `epochs`")
    batches: Counts | None = Field(default=None, description="null: the classifier's own")
    learning_rates: Annotated[list[Rate], Field(min_length=1)] | None = Field(
        default=None, description="null: the classifier's own"
    )
    optimisers: Names | None = Field(
        default=None, description="a file of `src/transect/training/optimisers` each; null: the classifier's own"
    )
    heads: Counts | None = Field(default=None, description="null: the classifier's own")
    layers: Counts | None = Field(default=None, description="null: the classifier's own")
    devices: Annotated[list[Literal["cpu", "cuda"]], Field(min_length=1)] = Field(
        default=["cpu"], description="where it is trained"
    )
    threads: Counts = Field(default=[1], description="of each cell")
    repeats: Count | None = Field(default=None, description="null: as many as `classify.repeats`")


class ClassifySection(Section):
    """Classifiers of tickets, trained and compared."""

    repeats: Count = Field(default=1, description="runs of each cell, each with its own weights and order of tickets")
    models: dict[str, ClassifierRule] = Field(default={}, description="classifiers by name, see below")
    grids: list[ClassifyGrid] = Field(default=[], description="see below")
