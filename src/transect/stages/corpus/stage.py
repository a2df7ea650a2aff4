"""The corpus stage: tickets are parsed and normalised, and identities hashed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.axes.text import CorpusCell
from transect.domain.errors import BadInput, unknown_name
from transect.domain.study import Count, Section
from transect.planning.context import Context
from transect.planning.sources import plugin_files
from transect.planning.stage import STAGES, Placement, Stage
from transect.text.formats import FORMATS
from transect.text.salt import read_salt, salt_file
from transect.text.splitters import SPLITTERS

Share = Annotated[float, Field(gt=0, le=1)]


Label = Literal["owner", "queue"]


class MadeRule(Section):
    """Tickets that are made up where those of a corpus are not there."""

    format: str = Field(default="synthetic", description="one that makes its own tickets")
    options: dict[str, Any] = Field(default={}, description="of that format")
    label: Label | None = Field(default=None, description="what is to be told of them; null: as of the corpus")


class CorpusRule(Section):
    """Where tickets come from, and what is kept of the people in them."""

    format: str = Field(description="a name from [plugins.md](plugins.md#ticket-format)")
    path: str | None = Field(
        default=None, description="file or folder, relative to the study file; null where the format makes its own"
    )
    options: dict[str, Any] = Field(default={}, description="of the format")
    otherwise: MadeRule | None = Field(
        default=None,
        description="tickets to make up where nothing is at `path`: `format`, `options` and `label`; the records of corpora and "
        "classifiers tell so, and what the report says of them; null: an error",
    )
    label: Label = Field(default="queue", description="what a classifier is to tell; tickets without it are rejected")
    redact: bool = Field(
        default=True,
        description="true: names of people in texts become pseudonyms, and e-mail addresses, telephone "
        "numbers and IP addresses go; owners and authors are hashed in either case",
    )
    limit: Count | None = Field(default=None, description="so many tickets, drawn with the study's seed; null: all")


class SplitRule(Section):
    """How tickets are dealt out."""

    by: str = Field(default="random", description="a name from [plugins.md](plugins.md#splitter)")
    train: Share = Field(description="share that trains; of all tickets, as are the others")
    validation: float = Field(default=0, ge=0, lt=1, description="share that ends training early")
    test: float = Field(default=0, ge=0, lt=1, description="share that tests")
    inference: float = Field(default=0, ge=0, lt=1, description="share kept for measuring inference")
    on_device: float = Field(default=0, ge=0, lt=1, description="share kept for retraining on devices, and for clients")
    clients: int = Field(
        default=0, ge=0, description="parts into which the share for devices is cut; 0: it stays whole"
    )


class EmbeddingsRule(Section):
    """A vocabulary and its vectors."""

    method: Literal["skip-gram", "random"] = Field(
        default="skip-gram", description="Word2Vec with skip-gram, or numbers drawn at random"
    )
    width: Count = Field(default=64, description="numbers in a vector")
    window: Count = Field(default=5, description="words on each side that a word is to predict")
    epochs: Count = Field(default=5, description="passes over the text")
    fit_on: Literal["train", "all"] = Field(
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
    splits: dict[str, SplitRule] = Field(default={}, description="ways to deal tickets out by name, see below")
    embeddings: dict[str, EmbeddingsRule] = Field(default={}, description="vocabularies by name, see below")
    lengths: dict[str, LengthRule] = Field(
        default={"quantile": LengthRule(), "gaussian": LengthRule(rule="gaussian")},
        description="lengths by name, see below",
    )


# Of a corpus, a split, vectors, a length: it is part of ids.
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@STAGES.register("corpus")
class Corpora(Stage[CorpusCell]):
    """Reads tickets; what cannot be read is counted by cause and listed."""

    payload = "transect.payloads.corpus:run"
    runner = "transect.stages.corpus.run:CorpusRunner"
    key = "tickets"
    section = TicketsSection
    placement = Placement(group="text")

    def check(self, section: TicketsSection, context: Context) -> None:
        """Names can stand in ids, formats and splitters are known, shares add up."""
        for key in ("corpora", "splits", "embeddings", "lengths"):
            for name in getattr(section, key):
                with context.complaints.noted():
                    if not _NAME.fullmatch(name):
                        where = context.where(f"tickets.{key}")
                        raise BadInput(f"{where}: name '{name}': expected letters, digits, _ and -")
        for name, corpus in section.corpora.items():
            with context.complaints.noted():
                _check_corpus(corpus, context.where(f"tickets.corpora.{name}"), context)
        for name, split in section.splits.items():
            with context.complaints.noted():
                _check_split(split, context.where(f"tickets.splits.{name}"))
        for name, length in section.lengths.items():
            with context.complaints.noted():
                if (length.words is None) == (length.rule == "fixed"):
                    where = context.where(f"tickets.lengths.{name}")
                    raise BadInput(f"{where}: `words` goes with rule `fixed`, and only with it")

    def spec(self, cell: CorpusCell, context: Context) -> dict[str, Any]:
        """The source's rule, with its path made absolute."""
        rule, instead_of = corpus_rule(context, cell.corpus)
        path = None if rule.path is None else str(context.file.parent / rule.path)
        told = {"path": path} | ({"instead_of": instead_of} if instead_of else {})
        return {"rule": rule.model_dump(exclude={"otherwise"}) | told, "seed": context.study.seed}

    def sources(self, cell: CorpusCell) -> list[Path]:
        """Every format: one is chosen by name."""
        return [file for name in FORMATS for file in plugin_files(FORMATS, name)]

    def environment(self, cell: CorpusCell) -> str:
        """Where the libraries are that read mail, HTML and languages."""
        return "text"

    def made_up(self, spec: dict[str, Any]) -> str:
        """Tickets, where there is no file of them."""
        missing = spec["rule"].get("instead_of")
        return f"{missing} is not there, so its tickets are generated" if missing else ""

    def files(self, spec: dict[str, Any]) -> list[Path]:
        """What the tickets are read from, and the salt, which is made where there is none yet."""
        path = spec["rule"]["path"]
        if path is None:
            return []
        salt = salt_file()
        read_salt(salt)
        return [Path(path), salt]


def corpus_rule(context: Context, name: str) -> tuple[CorpusRule, str]:
    """Return a corpus's rule, and empty; where its tickets are not there that of made ones, and the name of what is not."""
    rule: CorpusRule = context.section("tickets").corpora[name]
    if rule.otherwise is None or rule.path is None or (context.file.parent / rule.path).exists():
        return rule, ""
    made = rule.otherwise
    changed = {"path": None, "format": made.format, "options": made.options, "label": made.label or rule.label}
    return rule.model_copy(update=changed), Path(rule.path).name


def _check_corpus(corpus: CorpusRule, where: str, context: Context) -> None:
    kind = FORMATS.get(corpus.format, f"{where}.format")
    kind.check(corpus.options, f"{where}.options")
    if corpus.otherwise is not None:
        _check_made(corpus.otherwise, kind.reads, f"{where}.otherwise")
    _check_path(corpus.path, kind.reads, context, f"{where}.path", needed=corpus.otherwise is None)
    if kind.reads and salt_file().exists():
        # Found out by a cell it would take the results of all that follow with it.
        read_salt(salt_file())


def _check_split(split: SplitRule, where: str) -> None:
    SPLITTERS.get(split.by, f"{where}.by")
    shares = sum(getattr(split, part) for part in ("train", "validation", "test", "inference", "on_device"))
    if shares > 1 + 1e-9:
        raise BadInput(f"{where}: the shares add up to {shares:g}: expected at most 1")
    if split.clients and not split.on_device:
        raise BadInput(f"{where}.clients: {split.clients}, and there is no share `on_device` to cut")


def _check_made(made: MadeRule, reads: bool, where: str) -> None:
    kind = FORMATS.get(made.format, f"{where}.format")
    if not reads:
        raise BadInput(f"{where}: goes with a format that reads a file or folder, and this one makes its own tickets")
    if kind.reads:
        able = ", ".join(name for name in FORMATS if not FORMATS.get(name).reads)
        raise BadInput(f"{where}.format: '{made.format}' reads a file or folder: expected one of {able}")
    kind.check(made.options, f"{where}.options")


def _check_path(given: str | None, reads: bool, context: Context, where: str, *, needed: bool) -> None:
    if reads and given is None:
        raise BadInput(f"{where}: this format reads a file or folder, and none is given")
    if not reads and given is not None:
        raise BadInput(f"{where}: {given}: this format makes its own tickets and reads nothing")
    if given is not None and needed and not (context.file.parent / given).exists():
        raise BadInput(f"{where}: {context.file.parent / given}: no such file or folder")


def check_names(section: TicketsSection, where: str, **names: Iterable[str]) -> None:
    """Raise BadInput for a name that the key of the study's `tickets` does not have."""
    for key, given in names.items():
        known = getattr(section, key)
        for name in given:
            if name not in known:
                raise unknown_name(f"name of tickets.{key}", name, known, where)
