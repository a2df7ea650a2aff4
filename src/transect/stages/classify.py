"""The classify stage: classifiers of tickets, with a grid over their hyper-parameters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field

from transect.domain.axes.text import HYPERPARAMETERS, ClassifyCell, EmbeddingsCell
from transect.domain.cell import Cell
from transect.domain.counts import GrowingCounts
from transect.domain.errors import BadInput, unknown_name
from transect.domain.registry import Registry
from transect.domain.study import Count, Counts, Names, Section, typed
from transect.domain.takes import AllFiles, Takes
from transect.planning.context import Context
from transect.planning.stage import STAGES, Stage, points
from transect.stages.corpus.stage import check_names, corpus_rule
from transect.stages.encode import CORPUS_FACTS, encoded
from transect.text.classifiers import CLASSIFIERS, STATE, Classifier
from transect.text.formats import FORMATS
from transect.training.optimisers import OPTIMISERS, OWN_OPTIMISER

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
    splits: Names = Field(description="names from `tickets.splits`")
    embeddings: Names = Field(description="names from `tickets.embeddings`")
    words: Names = Field(default=["quantile"], description="names from `tickets.lengths`")


class ClassifyGrid(TextGrid):
    """The cross product of its lists; a list for a hyper-parameter that a classifier lacks does not multiply it."""

    models: Names = Field(description="names from `classify.models`")
    epochs: Counts | None = Field(default=None, description="passes over the training part; null: the classifier's own")
    updates: Counts | None = Field(default=None, description="steps, in the place of `epochs`")
    batches: GrowingCounts | None = Field(default=None, description="null: the classifier's own")
    learning_rates: Annotated[list[Rate], Field(min_length=1)] | None = Field(
        default=None, description="null: the classifier's own"
    )
    optimisers: Annotated[Names | None, typed(OPTIMISERS.named)] = Field(
        default=None, description="a file of `src/transect/training/optimisers` each; null: the classifier's own"
    )
    heads: Counts | None = Field(default=None, description="null: the classifier's own")
    layers: Counts | None = Field(default=None, description="null: the classifier's own")
    devices: Annotated[list[Literal["cpu", "cuda"]], Field(min_length=1)] = Field(
        default=["cpu"], description="where it is trained"
    )
    threads: GrowingCounts = Field(default=[1], description="of each cell")
    repeats: Count | None = Field(default=None, description="null: as many as `classify.repeats`")


class ClassifySection(Section):
    """Classifiers of tickets, trained and compared."""

    repeats: Count = Field(default=1, description="runs of each cell, each with its own weights and order of tickets")
    models: dict[str, ClassifierRule] = Field(default={}, description="classifiers by name, see below")
    grids: list[ClassifyGrid] = Field(default=[], description="see below")


# The key of a grid for each hyper-parameter.
LISTS = {
    "epochs": "epochs",
    "updates": "updates",
    "batch": "batches",
    "learning_rate": "learning_rates",
    "optimiser": "optimisers",
    "heads": "heads",
    "layers": "layers",
}

# What every classifier takes: rows with what their classes stand for, and vectors.
TEXT_TAKES: dict[str, Takes] = {"encode": AllFiles(details=CORPUS_FACTS), "embeddings": Takes("vectors.npy")}
_TEXT = ("corpus", "view", "names", "stop_words", "split", "embeddings")


def classifier_of(context: Context, model: str) -> Classifier:
    """Return the plug-in behind a name of `classify.models`."""
    return CLASSIFIERS.get(context.section("classify").models[model].kind)


def rules_of(cell: Any, context: Context, model: str, hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Return what names in a cell stand for, by axis: the report tells by it what a change was."""
    tickets = context.section("tickets")
    rule = context.section("classify").models[model]
    options = CLASSIFIERS.get(rule.kind).resolved(rule.options, hyperparameters)
    corpus, instead_of = corpus_rule(context, cell.corpus)
    return {
        "model": {"kind": rule.kind, "options": options},
        "corpus": {"synthetic": FORMATS.get(corpus.format).synthetic}
        | ({"instead_of": instead_of} if instead_of else {}),
        "split": tickets.splits[cell.split].model_dump(),
        "embeddings": tickets.embeddings[cell.embeddings].model_dump(),
        "words": tickets.lengths[cell.words].model_dump(),
    }


def reading_of(cell: Any, context: Context) -> dict[str, Any]:
    """Return what is done to a text before it is words, for those who apply the classifier."""
    rule, _ = corpus_rule(context, cell.corpus)
    # Formats that have no such options make tickets without quotes.
    cleaned = {key: rule.options.get(key, "drop") for key in ("replies", "signatures")}
    return {"view": cell.view, "names": cell.names, "redact": rule.redact} | cleaned


def check_text(grid: TextGrid, where: str, context: Context) -> None:
    """Raise BadInput for names that the study's `tickets` does not have."""
    tickets = context.section("tickets")
    for key in ("corpora", "splits", "embeddings"):
        check_names(tickets, f"{where}.{key}", **{key: getattr(grid, key)})
    check_names(tickets, f"{where}.words", lengths=grid.words)


def texts_of(grid: TextGrid) -> Iterable[dict[str, Any]]:
    """Yield the axes of the encoded tickets that a grid asks for."""
    yield from points(
        corpus=grid.corpora,
        view=grid.views,
        names=grid.names,
        stop_words=grid.stop_words,
        split=grid.splits,
        embeddings=grid.embeddings,
        words=grid.words,
    )


def check_model(name: str, splits: Iterable[str], where: str, context: Context) -> None:
    """Raise BadInput for an unknown classifier, or one that ends early by tickets that are not there."""
    models = context.section("classify").models
    if name not in models:
        raise unknown_name("classifier", name, models, where)
    if classifier_of(context, name).needs_valid(models[name].options):
        check_valid(splits, f"{where}: '{name}' ends early", context)


def check_valid(splits: Iterable[str], who: str, context: Context) -> None:
    """Raise BadInput for a split whose part `validation` is empty."""
    for name in splits:
        if not context.section("tickets").splits[name].validation:
            raise BadInput(f"{who} by the part `validation`, and tickets.splits.{name} has no share `validation`")


def check_points(
    model: str, points: Iterable[dict[str, Any]], embeddings: Iterable[str], where: str, context: Context
) -> None:
    """Raise BadInput for hyper-parameters that do not go together, or not with the width of the vectors."""
    options = context.section("classify").models[model].options
    widths = {context.section("tickets").embeddings[name].width: name for name in embeddings}
    for point in points:
        given = {axis: value for axis, value in point.items() if value is not None}
        if (options | given).get("optimiser") == OWN_OPTIMISER:
            raise BadInput(f"{where}: optimiser '{OWN_OPTIMISER}' is for a workload with a `module`: expected another")
        for width, name in widths.items():
            described = f"{where}: classifier '{model}' on vectors '{name}'"
            classifier_of(context, model).check_hyperparameters(options, given, width, described)


def text_inputs(cell: Any) -> dict[str, Cell]:
    """Return the cells that a classifier's tickets come from, by role."""
    axes = {axis: getattr(cell, axis) for axis in _TEXT}
    return {"encode": encoded(cell), "embeddings": EmbeddingsCell(**axes)}


@STAGES.register("classify")
class Classify(Stage[ClassifyCell]):
    """Trains a classifier, tests it, and writes it as ONNX where it can."""

    payload = "transect.payloads.classify:classify"
    # A longer run goes on with a shorter one's state, and so does an attempt that was killed.
    takes = TEXT_TAKES | {"shorter": Takes(STATE)}
    keeps = (STATE,)
    key = "classify"
    section = ClassifySection
    needs = ("encode", "embeddings")

    def check(self, section: ClassifySection, context: Context) -> None:
        """Names are known, and no list is given that no classifier of its grid has."""
        for name, rule in section.models.items():
            where = context.where(f"classify.models.{name}")
            with context.complaints.noted():
                CLASSIFIERS.get(rule.kind, f"{where}.kind").check(rule.options, f"{where}.options")
        for number, grid in enumerate(section.grids):
            with context.complaints.noted():
                if context.knows(OPTIMISERS, grid.optimisers or (), f"classify.grids.{number}.optimisers"):
                    self._check_grid(grid, section, context.where(f"classify.grids.{number}"), context)

    def _check_grid(self, grid: ClassifyGrid, section: ClassifySection, where: str, context: Context) -> None:
        check_text(grid, where, context)
        for name in grid.models:
            check_model(name, grid.splits, f"{where}.models", context)
        if grid.epochs is not None and grid.updates is not None:
            raise BadInput(f"{where}.updates: stands in the place of `epochs`, and both are given")
        varied = {axis for name in grid.models for axis in classifier_of(context, name).hyperparameters}
        for axis, key in LISTS.items():
            if getattr(grid, key) is not None and axis not in varied:
                raise BadInput(f"{where}.{key}: none of {', '.join(grid.models)} has this hyper-parameter")
        for name in grid.models:
            points = _points(grid, section.models[name].options, classifier_of(context, name))
            check_points(name, points, grid.embeddings, where, context)

    def size(self, section: ClassifySection) -> int:
        """A list for a hyper-parameter that a classifier lacks does not multiply: cells are counted when made."""
        return 0

    def cells(self, section: ClassifySection, context: Context) -> Iterable[ClassifyCell]:
        """The cross product of each grid, with its repeats."""
        for grid in section.grids:
            for text, model in product(texts_of(grid), grid.models):
                rule = section.models[model]
                for point, device, threads in product(
                    _points(grid, rule.options, classifier_of(context, model)),
                    dict.fromkeys(grid.devices),
                    dict.fromkeys(grid.threads),
                ):
                    for repeat in range(grid.repeats or section.repeats):
                        yield ClassifyCell(
                            **text, model=model, kind=rule.kind, **point, device=device, threads=threads, repeat=repeat
                        )

    def inputs(self, cell: ClassifyCell, context: Context) -> dict[str, Cell]:
        """The rows, the vectors, and a shorter run with which this one goes on."""
        taken = text_inputs(cell)
        shorter = _shorter(cell, context)
        return taken | ({"shorter": shorter} if shorter is not None else {})

    def plugins(self, cell: ClassifyCell) -> list[tuple[Registry[Any], str]]:
        """The classifier, and the rule by which it is trained."""
        found: list[tuple[Registry[Any], str]] = [(CLASSIFIERS, cell.kind)]
        return found if cell.optimiser is None else [*found, (OPTIMISERS, cell.optimiser)]

    def spec(self, cell: ClassifyCell, context: Context) -> dict[str, Any]:
        """The classifier with its options, and as parameters what the names in the cell stand for."""
        rule = context.section("classify").models[cell.model]
        return {
            "classifier": rule.model_dump(),
            "hyperparameters": cell.hyperparameters(),
            "seed": context.study.seed,
            "text": reading_of(cell, context),
            "parameters": rules_of(cell, context, cell.model, cell.hyperparameters()),
        }

    def environment(self, cell: ClassifyCell) -> str:
        """The classifier's."""
        return CLASSIFIERS.get(cell.kind).environment


def _points(grid: ClassifyGrid, options: dict[str, Any], classifier: Classifier) -> Iterable[dict[str, Any]]:
    """Yield the hyper-parameters of each point; those that the grid leaves open are the classifier's own."""
    usual = classifier.usual(options)
    lists = {}
    for axis in HYPERPARAMETERS:
        if axis in classifier.hyperparameters:
            given = getattr(grid, LISTS[axis])
            lists[axis] = [usual.get(axis)] if given is None else list(dict.fromkeys(given))
    for chosen, replaced in (("updates", "epochs"), ("epochs", "updates")):
        # What the grid gives stands in the place of the other, whichever of them the options have.
        if getattr(grid, chosen) is not None and replaced in lists:
            lists[replaced] = [None]
    yield from points(**lists)


def _all_but_epochs(cell: Any) -> Hashable:
    same: ClassifyCell = cell.changed(epochs=None)
    return same


def _shorter(cell: ClassifyCell, context: Context) -> ClassifyCell | None:
    if cell.epochs is None:
        return None
    same = context.all_of("classify", _all_but_epochs, _all_but_epochs(cell))
    shorter = [point for point in same if isinstance(point, ClassifyCell) and 0 < _epochs(point) < cell.epochs]
    return max(shorter, key=_epochs, default=None)


def _epochs(cell: ClassifyCell) -> int:
    return cell.epochs or 0
