"""The axes of ONNX models: made, exported, converted, loaded again, and held against ONNX's operator tests."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from transect.domain.cell import Axis, Cell


class ModelCell(Cell):
    """A model with drawn weights, built in a framework and written to ONNX by an exporter."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["model"] = "model"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Annotated[str, Axis(place=30, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]


class ExportCell(Cell):
    """One trained model of a framework, written to ONNX by an exporter."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["export"] = "export"
    workload: Annotated[str, Axis(place=20, name=True)]
    framework: Annotated[str, Axis(place=30, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]


# To which an exported model can be converted.
Lower = Literal["fp16", "int8-dynamic", "int8-static"]
PRECISIONS: tuple[Lower, ...] = get_args(Lower)


class ConvertCell(Cell):
    """An exported model, trained or made, in a lower precision."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["convert"] = "convert"
    workload: Annotated[str, Axis(place=20, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]


class RoundtripCell(Cell):
    """A made model's file, loaded by another framework."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    stage: Literal["roundtrip"] = "roundtrip"
    workload: Annotated[str, Axis(place=20, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]
    loader: Annotated[str, Axis(place=60, label=lambda name: f"into {name}", name=True)]


class ConformanceCell(Cell):
    """ONNX's operator tests under one runtime."""

    stage: Literal["conformance"] = "conformance"
    runtime: Annotated[str, Axis(place=60, name=True)]
    provider: Annotated[str, Axis(place=70)]


class NodeTestsCell(Cell):
    """ONNX's own operator tests, as the runner contract has tensors."""

    stage: Literal["nodetests"] = "nodetests"
