"""The section of a study that says which tickets there are, and how their text is prepared."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.study import Count, Section

Share = Annotated[float, Field(gt=0, le=1)]


class CorpusRule(Section):
    """Where tickets come from, and what is kept of the people in them."""

    format: str = Field(description="a name from [plugins.md](plugins.md#ticket-format)")
    path: str | None = Field(
        default=None, description="file or folder, relative to the study file; null where the format makes its own"
    )
    options: dict[str, Any] = Field(default={}, description="of the format")
    label: Literal["owner", "queue"] = Field(
        default="queue", description="what a classifier is to tell; tickets without it are rejected"
    )
    redact: bool = Field(
        default=True,
        description="true: names of people in texts become pseudonyms, and e-mail addresses, telephone "
        "numbers and IP addresses go; owners and authors are hashed in either case",
    )
    limit: Count | None = Field(default=None, description="so many tickets, drawn with the study's seed; null: all")


class PartitionRule(Section):
    """How tickets are dealt out."""

    by: str = Field(default="random", description="a name from [plugins.md](plugins.md#partitioner)")
    train: Share = Field(description="share that trains; of all tickets, as are the others")
    valid: float = Field(default=0, ge=0, lt=1, description="share that ends training early")
    test: float = Field(default=0, ge=0, lt=1, description="share that tests")
    infer: float = Field(default=0, ge=0, lt=1, description="share kept for measuring inference")
    device: float = Field(default=0, ge=0, lt=1, description="share kept for retraining on devices, and for clients")
    clients: int = Field(
        default=0, ge=0, description="parts into which the share for devices is cut; 0: it stays whole"
    )


class VectorsRule(Section):
    """A vocabulary and its vectors."""

    method: Literal["skip-gram", "drawn"] = Field(
        default="skip-gram", description="Word2Vec with skip-gram, or numbers drawn at random"
    )
    width: Count = Field(default=64, description="numbers in a vector")
    window: Count = Field(default=5, description="words on each side that a word is to predict")
    epochs: Count = Field(default=5, description="passes over the text")
    fit: Literal["train", "all"] = Field(
        default="train", description="tickets that vocabulary and vectors are fitted to; `all` shows the leak"
    )
    minimum: Count = Field(default=2, description="a word that is rarer than this is unknown")
    most: Count = Field(default=20000, description="words in the vocabulary, the most frequent ones")


class LengthRule(Section):
    """How many words of a ticket are read."""

    rule: Literal["gaussian", "quantile", "fixed"] = Field(
        default="quantile",
        description="the bound below which `share` of the tickets lie, by a Gaussian fitted to the lengths "
        "of the training part or by their own quantile; or `words`",
    )
    share: Share = Field(default=0.95, description="of tickets that are read whole")
    words: Count | None = Field(default=None, description="of rule `fixed`")
    most: Count = Field(default=512, description="no more than this, whatever the rule says")


class TicketsSection(Section):
    """Tickets, and the ways in which their text becomes numbers."""

    corpora: dict[str, CorpusRule] = Field(default={}, description="sources by name, see below")
    partitions: dict[str, PartitionRule] = Field(default={}, description="ways to deal tickets out by name, see below")
    vectors: dict[str, VectorsRule] = Field(default={}, description="vocabularies by name, see below")
    lengths: dict[str, LengthRule] = Field(
        default={"quantile": LengthRule(), "gaussian": LengthRule(rule="gaussian")},
        description="lengths by name, see below",
    )
