"""The axes of serving a model."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from transect.domain.cell import Axis, Cell, counted


class InferCell(Cell):
    """One runtime that executes a workload's model on an execution provider."""

    always: ClassVar[tuple[str, ...]] = ("threads", "precision")

    stage: Literal["infer"] = "infer"
    workload: Annotated[str, Axis(place=20, name=True)]
    # None: a runtime that takes the framework's own model.
    exporter: Annotated[str | None, Axis(place=50, label=lambda name: f"from {name}" if name else "", name=True)] = None
    runtime: Annotated[str, Axis(place=60, name=True)]
    provider: Annotated[str, Axis(place=70)]
    # The name of a set of session options.
    options: Annotated[str, Axis(place=75, label=lambda name: f"options {name}", kind=True)] = "equal"
    batch: Annotated[int, Axis(place=120, word=lambda n: f"b{n}", label=lambda n: f"batch {n}"), Field(ge=1)]
    sessions: Annotated[int, Axis(place=125, word=lambda n: f"s{n}", label=counted("session")), Field(ge=1)] = 1
    # Offered requests per second; None: one call after another.
    load: Annotated[
        float | None,
        Axis(
            place=126,
            word=lambda rate: f"q{rate:g}" if rate else "",
            label=lambda rate: f"{rate:g} requests/s" if rate else "",
            kind=True,
        ),
        Field(gt=0, allow_inf_nan=False),
    ] = None
