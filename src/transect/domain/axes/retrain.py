"""The axes of exported training steps and of the retraining that runs them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell


def _base(epochs: int | None) -> str:
    if epochs is None:
        return "trained base"
    return "untrained base" if epochs == 0 else f"base of {epochs} epoch" + "s" * (epochs > 1)


# Shared with the retraining that goes on from it. Epochs of the base model's training: None is a
# whole one, 0 none, and what lies between a model that stopped too early.
BaseEpochs = Annotated[
    int | None, Axis(place=80, word=lambda n: "" if n is None else f"e{n}", label=_base, kind=True), Field(ge=0)
]
Optimiser = Annotated[str, Axis(place=82)]
# The largest Euclidean norm of all gradients together; None: they stay as they are.
Clip = Annotated[
    float | None,
    Axis(
        place=90,
        word=lambda norm: f"c{norm:g}" if norm else "",
        label=lambda norm: f"gradients clipped at {norm:g}" if norm else "",
        kind=True,
    ),
    Field(gt=0, allow_inf_nan=False),
]


class StepCell(Cell):
    """The training step of a workload with an optimiser, as ordinary ONNX graphs."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["export-training-step"] = "export-training-step"
    workload: Annotated[str, Axis(place=20, name=True)]
    optimiser: Optimiser
    base_epochs: BaseEpochs = None
    # Whether gradients of micro-batches can be added up.
    accumulates: Annotated[
        bool, Axis(place=91, word=lambda yes: "a" if yes else "", label=lambda yes: "", kind=True)
    ] = False
    clip: Clip = None
    # Whether weights can be pulled to an anchor.
    proximal: Annotated[bool, Axis(place=92, word=lambda yes: "p" if yes else "", label=lambda yes: "", kind=True)] = (
        False
    )


# Between the names of runtimes that take turns: a file name takes none of these words for another.
RELAY = ">"


class RetrainCell(Cell):
    """A base model that one runtime goes on training, or several in turn: `rust>javascript`.

    `steps` are updates, of all turns together; a batch holds the rows of one micro-batch. Repeats
    differ in the order of the rows and, where the base is not that of a train cell, in the base.
    """

    always: ClassVar[tuple[str, ...]] = ("threads", "precision", "rate")

    stage: Literal["retrain"] = "retrain"
    workload: Annotated[str, Axis(place=20, name=True)]
    runtime: Annotated[str, Axis(place=60, name=True, word=lambda name: name.replace(RELAY, "+"))]
    provider: Annotated[str, Axis(place=70)]
    base_epochs: BaseEpochs = None
    optimiser: Optimiser
    # The name of a learning rate, or of a schedule: `old` is the one that the base was trained with.
    rate: Annotated[str, Axis(place=84, label=lambda name: f"{name} rate")] = "old"
    steps: Annotated[int, Axis(place=86, word=lambda n: f"s{n}", label=lambda n: f"{n} steps"), Field(ge=1)]
    clip: Clip = None
    batch: Annotated[int, Axis(place=120, word=lambda n: f"b{n}", label=lambda n: f"batch {n}"), Field(ge=1)]
    # Micro-batches in a step.
    accumulate: Annotated[
        int,
        Axis(place=121, word=lambda n: f"a{n}", label=lambda n: f"{n} micro-batches" if n > 1 else "", kind=True),
        Field(ge=1),
    ] = 1

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes in turn; most cells have one."""
        return tuple(self.runtime.split(RELAY))

    @property
    def is_relay(self) -> bool:
        """Whether several runtimes take turns."""
        return RELAY in self.runtime

    def ends(self) -> list[tuple[str, int]]:
        """Return each turn's runtime and the step at which it ends; all do as many steps.

        >>> RetrainCell(workload="w", runtime="rust>go", provider="cpu", optimiser="sgd", steps=8,
        ...             batch=4).ends()
        [('rust', 4), ('go', 8)]
        """
        share = self.steps // len(self.runtimes)
        return [(name, share * turn) for turn, name in enumerate(self.runtimes, 1)]
