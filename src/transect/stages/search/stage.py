"""The search stage: successive halving over a classifier's hyper-parameters, each place of each rung a cell."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from transect.domain.axes.text import SearchCell
from transect.domain.cell import Cell
from transect.domain.counts import GrowingCounts
from transect.domain.errors import BadInput
from transect.domain.registry import Registry
from transect.domain.study import Count, Counts, Names, Section, typed
from transect.domain.takes import Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage
from transect.stages.classify import (
    LISTS,
    TEXT_TAKES,
    check_model,
    check_points,
    check_valid,
    classifier_of,
    reading_of,
    rules_of,
    text_inputs,
)
from transect.stages.corpus.stage import check_names
from transect.text.classifiers import CLASSIFIERS, STATE
from transect.training.optimisers import OPTIMISERS

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
    """The points that a search draws from; a hyper-parameter without a list stays the classifier's own."""

    learning_rates: RateRange | Annotated[list[Rate], Field(min_length=1)] | None = Field(
        default=None, description="a list, or `{low: …, high: …}`, drawn evenly in its logarithm"
    )
    batches: GrowingCounts | None = Field(default=None, description="tickets in a batch")
    optimisers: Annotated[Names | None, typed(OPTIMISERS.named)] = Field(
        default=None, description="a file of `src/transect/training/optimisers` each"
    )
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
    split: str = Field(
        description="a name from `tickets.splits`; its share `validation` says which points are the best"
    )
    embeddings: str = Field(description="a name from `tickets.embeddings`")
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
    """Searches for the hyper-parameters of classifiers."""

    searches: dict[str, SearchRule] = Field(default={}, description="searches by name, see below")


_NAME = re.compile(r"[A-Za-z0-9_-]+")
# A range of rates has no more points when so many in a row were drawn before.
_DRAWN_BEFORE = 1000
_AXES = ("view", "names", "stop_words", "split", "embeddings", "words")


@STAGES.register("search")
class Search(Stage[SearchCell]):
    """Draws points, and lets the best of them train on."""

    payload = "transect.payloads.search:search"
    runner = "transect.stages.search.run:SearchRunner"
    takes = TEXT_TAKES
    keeps = (STATE,)
    key = "search"
    section = SearchSection
    needs = ("encode", "embeddings")

    def check(self, section: SearchSection, context: Context) -> None:
        """Names are known, the classifier has the hyper-parameters, and the budget reaches the last rung."""
        for name, rule in section.searches.items():
            with context.complaints.noted():
                key = f"search.searches.{name}.space.optimisers"
                if context.knows(OPTIMISERS, rule.space.optimisers or (), key):
                    self._check_search(name, rule, context)

    def _check_search(self, name: str, rule: SearchRule, context: Context) -> None:
        where = context.where(f"search.searches.{name}")
        if not _NAME.fullmatch(name):
            raise BadInput(f"{where}: expected letters, digits, _ and - in its name")
        named = {"splits": [rule.split], "embeddings": [rule.embeddings], "lengths": [rule.words]}
        check_names(context.section("tickets"), where, corpora=rule.corpora, **named)
        check_model(rule.model, [rule.split], f"{where}.model", context)
        check_valid([rule.split], f"{where}: points are compared", context)
        classifier = classifier_of(context, rule.model)
        for axis in ("epochs", *_space(rule)):
            if axis not in classifier.hyperparameters:
                raise BadInput(f"{where}: classifier '{rule.model}' has no hyper-parameter '{axis}'")
        if not places_of(rule):
            raise BadInput(
                f"{where}.budget: {rule.budget} epochs do not pay for a point in each of "
                f"{rule.rungs} rungs: expected {_cost(rule, rule.keep ** (rule.rungs - 1))} or more"
            )
        points = draw_points(rule, name, context.study.seed)
        check_points(rule.model, points, [rule.embeddings], f"{where}.space", context)

    def cells(self, section: SearchSection, context: Context) -> Iterable[SearchCell]:
        """Every place of every rung, for each corpus."""
        for name, rule in section.searches.items():
            first = len(draw_points(rule, name, context.study.seed))
            kind = context.section("classify").models[rule.model].kind
            for corpus in dict.fromkeys(rule.corpora):
                for rung in range(rule.rungs):
                    for place in range(_places(rule, first, rung)):
                        yield SearchCell(
                            corpus=corpus,
                            search=name,
                            kind=kind,
                            rung=rung,
                            place=place,
                            device=rule.device,
                            threads=rule.threads,
                        )

    def inputs(self, cell: SearchCell, context: Context) -> dict[str, Cell]:
        """The tickets, and all places of the rung before."""
        rule = context.section("search").searches[cell.search]
        taken = text_inputs(_text(rule, cell))
        if cell.rung:
            first = len(draw_points(rule, cell.search, context.study.seed))
            for place in range(_places(rule, first, cell.rung - 1)):
                taken[f"place-{place}"] = cell.changed(rung=cell.rung - 1, place=place)
        return taken

    def taken(self, role: str) -> Takes:
        """Of the places of the rung before what one of them is chosen by, and its state: see the runner."""
        return Takes() if role.startswith("place-") else super().taken(role)

    def plugins(self, cell: SearchCell) -> list[tuple[Registry[Any], str]]:
        """The classifier."""
        return [(CLASSIFIERS, cell.kind)]

    def spec(self, cell: SearchCell, context: Context) -> dict[str, Any]:
        """The classifier with its options, the epochs of the rung, and in rung 0 the point."""
        rule: SearchRule = context.section("search").searches[cell.search]
        model = context.section("classify").models[rule.model]
        point = None
        if not cell.rung:
            point = draw_points(rule, cell.search, context.study.seed)[cell.place]
        text = _text(rule, cell)
        of_rung = {"epochs": rule.epochs * rule.keep**cell.rung}
        return {
            "classifier": model.model_dump(),
            "hyperparameters": of_rung,
            "point": point,
            "text": reading_of(text, context),
            "seed": context.study.seed,
            # In later rungs the point is known when the rung before has ended: details say it.
            "parameters": rules_of(text, context, rule.model, (point or {}) | of_rung),
        }

    def sources(self, cell: SearchCell) -> list[Path]:
        """Every optimiser: which one trains here is known when the rung before has ended."""
        return [OPTIMISERS.source(name) for name in OPTIMISERS]

    def environment(self, cell: SearchCell) -> str:
        """The classifier's."""
        return CLASSIFIERS.get(cell.kind).environment


def _text(rule: SearchRule, cell: SearchCell) -> Any:
    return SimpleNamespace(corpus=cell.corpus, **{axis: getattr(rule, axis) for axis in _AXES})


def _places(rule: SearchRule, first: int, rung: int) -> int:
    places: int = max(1, first // rule.keep**rung)
    return places


def _cost(rule: SearchRule, first: int) -> int:
    """Return the epochs of all cells: those of a later rung train what is missing."""
    total, before = 0, 0
    for rung in range(rule.rungs):
        epochs = rule.epochs * rule.keep**rung
        total += _places(rule, first, rung) * (epochs - before)
        before = epochs
    return total


def places_of(rule: SearchRule) -> int:
    """Return how many points the budget pays for; 0 where the last rung would have none."""
    # Each place costs an epoch or more.
    first = bisect_right(range(1, rule.budget + 1), rule.budget, key=partial(_cost, rule))
    return first if first >= rule.keep ** (rule.rungs - 1) else 0


def _space(rule: SearchRule) -> dict[str, Any]:
    given = {axis: getattr(rule.space, key, None) for axis, key in LISTS.items()}
    return {axis: values for axis, values in given.items() if values is not None}


def draw_points(rule: SearchRule, name: str, seed: int) -> list[dict[str, Any]]:
    """Return the points of rung 0, none twice: the same for the same rule, name and seed.

    There are fewer than the budget pays for where the space has no more.
    """
    generator = np.random.default_rng([seed, *name.encode()])
    space, wanted = _space(rule), places_of(rule)
    if any(isinstance(values, RateRange) for values in space.values()):
        found: dict[tuple[Any, ...], None] = {}
        misses = 0
        # A narrow range has few rates of three digits: what is drawn again is left out.
        while len(found) < wanted and misses < _DRAWN_BEFORE:
            known = len(found)
            found[tuple(_draw(values, generator) for values in space.values())] = None
            misses = 0 if len(found) > known else misses + 1
        return [dict(zip(space, point, strict=True)) for point in found]
    every = [dict(zip(space, values, strict=True)) for values in product(*map(set_of, space.values()))]
    order = generator.permutation(len(every))[:wanted]
    return [every[number] for number in order]


def set_of(values: list[Any]) -> list[Any]:
    """Return the values in their order, each once."""
    return list(dict.fromkeys(values))


def _draw(values: Any, generator: np.random.Generator) -> Any:
    if isinstance(values, RateRange):
        drawn = np.exp(generator.uniform(np.log(values.low), np.log(values.high)))
        # As many digits as a person reads.
        return float(f"{drawn:.3g}")
    return values[int(generator.integers(len(values)))]
