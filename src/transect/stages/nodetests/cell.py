"""The axes of a cell of node tests: none, there is one set of them for each version of ONNX."""

from __future__ import annotations

from typing import Literal

from transect.domain.cell import Cell

__all__ = ["NodeTestsCell"]


class NodeTestsCell(Cell):
    """ONNX's own operator tests, as the runner contract has tensors."""

    stage: Literal["nodetests"] = "nodetests"
