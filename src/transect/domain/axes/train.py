"""The axes of training, and of what stands beside one: reference, memory plan, profile, forecast."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell
from transect.domain.files import canonical_json
from transect.domain.options import OptionsAxis

_LABELS = {"linear": "linear rate", "files": "from files", "synthetic": "synthetic input"}


def _unusual(value: str) -> str:
    return _LABELS.get(value, "")


def _budget(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:g}MiB"


def _within(size: int | None) -> str:
    return "" if size is None else f"within {size / 2**20:g} MiB"


def _given(value: int | float | str | None) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    except ValueError:
        # Anybody's text, which whoever knows the hyper-parameter refuses.
        return value


def _changed_word(changes: tuple[tuple[str, Any], ...]) -> str:
    given = ((name, _given(value)) for name, value in changes)
    texts = ((name, " ".join(map(str, v.values())) if isinstance(v, dict) else v) for name, v in given)
    return ".".join(f"{name}{'none' if text is None else text}" for name, text in texts)


def _changed_label(changes: tuple[tuple[str, Any], ...]) -> str:
    labels = []
    for name, value in changes:
        known = _given(value)
        options = {key: option for key, option in known.items() if key != "name"} if isinstance(known, dict) else {}
        told = ", ".join(f"{key} {option}" for key, option in options.items())
        kind = known.get("name") if isinstance(known, dict) else known
        labels.append(
            f"{name.replace('_', ' ')} {'none' if kind is None else kind}{f' ({told})'.replace('_', ' ') if told else ''}"
        )
    return ", ".join(labels)


# Shared with the reference, which stands for these axes of a training cell.
Framework = Annotated[str, Axis(place=30, name=True)]
Strategy = Annotated[str, Axis(place=40, name=True)]
Batch = Annotated[int, Axis(place=120, word=lambda n: f"b{n}", label=lambda n: f"batch {n}"), Field(ge=1)]
# What the gradients of ranks become: their mean or, as in one published study, their sum.
Reduce = Annotated[
    Literal["mean", "sum"], Axis(place=160, label=lambda v: "sum of gradients" if v == "sum" else "", kind=True)
]
# How the learning rate follows the global batch: not at all, or in proportion.
LearningRateRule = Annotated[Literal["none", "linear"], Axis(place=161, label=_unusual, kind=True)]
# Where batches come from: the data stage's arrays, image files, or random numbers.
Input = Annotated[Literal["stored", "files", "synthetic"], Axis(place=162, label=_unusual, kind=True)]
# Hyper-parameters in place of the workload's, sorted by name; a mapping, such as a schedule with options, as its JSON text.
Hyperparameters = Annotated[
    tuple[tuple[str, int | float | str | None], ...],
    Axis(place=165, word=_changed_word, label=_changed_label, kind=True),
]
# Shared with the plan that a `planned` memory follows.
MemoryBudget = Annotated[int | None, Axis(place=164, word=_budget, label=_within, kind=True), Field(ge=1)]


def hyperparameters_of(given: Mapping[str, Any]) -> Hyperparameters:
    """Return hyper-parameters of a study as the axis holds them."""
    texts = {name: canonical_json(value) if isinstance(value, dict) else value for name, value in given.items()}
    return tuple(sorted(texts.items()))


def changed_hyperparameters(changes: Hyperparameters) -> dict[str, Any]:
    """Return them as a study has them."""
    return {name: _given(value) for name, value in changes}


class _FrameworkAxes(Cell):
    """A workload by a framework, in batches of one size."""

    always: ClassVar[tuple[str, ...]] = ("nodes", "precision")

    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Framework
    # Of a training and its reference the global batch; of a profile a micro-batch.
    batch: Batch


class _TrainedAxes(_FrameworkAxes):
    """What a training shares with its reference."""

    strategy: Strategy
    reduce: Reduce = "mean"
    learning_rate_rule: LearningRateRule = "none"
    input: Input = "stored"
    hyperparameters: Hyperparameters = ()


class TrainCell(_TrainedAxes):
    """One training: a workload by a framework, its ranks joined by a strategy."""

    stage: Literal["train"] = "train"
    # Options of the strategy that are not at their defaults.
    options: OptionsAxis = ()
    # What becomes of activations between the passes: a name among `training.memory.MEMORIES`.
    memory: Annotated[str, Axis(place=163, kind=True)] = "plain"
    # Bytes that training may hold besides what it began with; None: as much as there is.
    memory_budget: MemoryBudget = None


class ReferenceCell(_TrainedAxes):
    """The float64 path that training cells of one problem must follow."""

    stage: Literal["reference"] = "reference"
    # Parts in which it cuts each batch, as ranks do.
    shards: Annotated[int, Axis(place=150, word=lambda n: f"s{n}"), Field(ge=1)] = 1
    # Micro-batches in which it cuts each part, as pipelines do.
    micro_batches: Annotated[int, Axis(place=151, word=lambda n: f"m{n}"), Field(ge=1)] = 1


# The decision, in the cell's folder: what a training's worker reads.
MEMORY_PLAN = "memory-plan.json"


class MemoryCell(_FrameworkAxes):
    """What becomes of each layer's activations, under a budget, on a rank with `batch` samples."""

    stage: Literal["memory-plan"] = "memory-plan"
    # As of the training cell: gradients and the optimiser's states are taken off it.
    memory_budget: MemoryBudget = None
    # Ranks of its node: where their threads take all cores, nothing hides behind computing.
    together: Annotated[int, Axis(place=166, word=lambda n: f"with{n}"), Field(ge=1)] = 1


class ProfileCell(_FrameworkAxes):
    """What each layer of a workload takes by a framework, in micro-batches of `batch` samples.

    With several ranks on a node: what it takes while all of them do the same, each for itself.
    """

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["profile"] = "profile"


def profiled_training(cell: ProfileCell) -> TrainCell:
    """Return the training whose passes are profiled: what plug-ins say of it holds for the profile."""
    return TrainCell(
        workload=cell.workload,
        framework=cell.framework,
        strategy="single",
        batch=cell.batch,
        threads=cell.threads,
        precision=cell.precision,
        device=cell.device,
        repeat=cell.repeat,
    )


class ForecastCell(TrainCell):
    """What a training will take. Its repeats share one prediction."""

    stage: Literal["forecast"] = "forecast"  # type: ignore[assignment]


def forecast_of(cell: TrainCell) -> ForecastCell:
    """Return the prediction of a training."""
    return ForecastCell(**_axes(cell) | {"repeat": 0})


def trained_as(cell: ForecastCell) -> TrainCell:
    """Return the training that a prediction is for, repeat 0."""
    return TrainCell(**_axes(cell))


def _axes(cell: TrainCell) -> dict[str, Any]:
    return {name: getattr(cell, name) for name in TrainCell.model_fields if name != "stage"}
