"""The axes of ONNX models: made, exported, converted, loaded again, and held against ONNX's operator tests."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from transect.domain.cell import Axis, Cell


class _FileAxes(Cell):
    """A workload's model that an exporter wrote."""

    always: ClassVar[tuple[str, ...]] = ("precision",)

    workload: Annotated[str, Axis(place=20, name=True)]
    exporter: Annotated[str, Axis(place=50, name=True)]


class ModelCell(_FileAxes):
    """A model with drawn weights, built in a framework and written to ONNX by an exporter."""

    stage: Literal["generated-model"] = "generated-model"
    framework: Annotated[str, Axis(place=30, name=True)]


class ExportCell(_FileAxes):
    """One trained model of a framework, written to ONNX by an exporter."""

    stage: Literal["export"] = "export"
    framework: Annotated[str, Axis(place=30, name=True)]


# To which an exported model can be converted.
Lower = Literal["fp16", "int8-dynamic", "int8-static"]
PRECISIONS: tuple[Lower, ...] = get_args(Lower)


class ConvertCell(_FileAxes):
    """An exported model, trained or made, in a lower precision."""

    stage: Literal["convert"] = "convert"


class RoundtripCell(_FileAxes):
    """A made model's file, loaded by another framework."""

    stage: Literal["roundtrip"] = "roundtrip"
    loader: Annotated[str, Axis(place=60, label=lambda name: f"into {name}", name=True)]


class ConformanceCell(Cell):
    """ONNX's operator tests under one runtime."""

    stage: Literal["conformance"] = "conformance"
    runtime: Annotated[str, Axis(place=60, name=True)]
    provider: Annotated[str, Axis(place=70)]


class NodeTestsCell(Cell):
    """ONNX's own operator tests, as the runner contract has tensors."""

    stage: Literal["onnx-node-tests"] = "onnx-node-tests"
