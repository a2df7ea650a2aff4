"""The axes of federated learning: clients that train on their own rows, and the server that makes one model of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.axes.train import Hyperparameters
from transect.domain.cell import Axis, Cell, counted
from transect.domain.options import MoreOptionsAxis, OptionsAxis


class Federation(Cell):
    """What is computed, whoever computes it.

    `options` are those of the aggregation. `method`: what clients do besides plain local steps, `method_options` its own. `partition` says how rows are dealt to `clients`. `cohort`: clients that train at the
    same time. `buffer`: updates that the server waits for before it makes a model while clients go on; None: it waits for the whole cohort, in rounds. `local_steps` are
    those of a client's turn, `batch` the rows of one. `slowness`: sigma of the lognormal durations of turns.
    """

    workload: Annotated[str, Axis(place=20, name=True)]
    aggregation: Annotated[str, Axis(place=40, name=True, kind=True)]
    options: OptionsAxis = ()
    method: Annotated[str, Axis(place=41, kind=True)] = "plain"
    method_options: MoreOptionsAxis = ()
    partition: Annotated[str, Axis(place=42, label=lambda name: f"partition {name}", kind=True)]
    clients: Annotated[
        int, Axis(place=44, word=lambda n: f"c{n}", label=counted("client"), kind=True), Field(ge=1, le=2**20)
    ]
    cohort: Annotated[
        int, Axis(place=46, word=lambda n: f"k{n}", label=lambda n: f"{n} at once", kind=True), Field(ge=1)
    ]
    buffer: Annotated[
        int | None,
        Axis(
            place=47,
            word=lambda n: f"a{n}" if n else "",
            label=lambda n: f"a model for every {n} updates" if n else "in rounds",
            kind=True,
        ),
        Field(ge=1),
    ] = None
    slowness: Annotated[
        float,
        Axis(place=48, word=lambda s: f"s{s:g}", label=lambda s: f"slowness {s:g}", kind=True),
        Field(ge=0, le=5, allow_inf_nan=False),
    ] = 0.0
    rounds: Annotated[
        int, Axis(place=86, word=lambda n: f"u{n}", label=counted("update"), kind=True), Field(ge=1, le=2**20)
    ]
    local_steps: Annotated[
        int, Axis(place=87, word=lambda n: f"l{n}", label=counted("local step"), kind=True), Field(ge=1)
    ]
    batch: Annotated[int, Axis(place=120, word=lambda n: f"b{n}", label=lambda n: f"batch {n}", kind=True), Field(ge=1)]
    hyperparameters: Hyperparameters = ()


class FederateReferenceCell(Federation):
    """The float64 path that every engine follows; in no precision but that."""

    stage: Literal["federate-reference"] = "federate-reference"
    precision: Annotated[str, Axis(place=130, kind=True)] = "fp64"


class FederateCell(Federation):
    """One simulation. `framework` computes the steps of engine `loop`, `runtime` those of engine `onnx`, by turns where
    several are joined by `>`.
    """

    always: ClassVar[tuple[str, ...]] = ("threads", "precision", "nodes")

    stage: Literal["federate"] = "federate"
    engine: Annotated[str, Axis(place=30, name=True)]
    framework: Annotated[str | None, Axis(place=31, name=True, label=lambda v: v or "")] = None
    runtime: Annotated[
        str | None, Axis(place=60, name=True, word=lambda v: (v or "").replace(">", "+"), label=lambda v: v or "")
    ] = None

    # Of programs: what runtimes ask of any cell.
    provider: ClassVar[str] = "cpu"

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes that clients have, by turns."""
        return tuple(self.runtime.split(">")) if self.runtime else ()
