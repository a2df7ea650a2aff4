"""Checks of graphs that the portable step exports: part of step_worker.py."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import onnx
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn

from step_coverage import CASES, Case
from step_coverage.case import CLASSES, classes, cross_entropy, normal
from step_coverage.check import check, export
from transect.onnx_models.graph_writer import GraphWriter, value_info
from transect.portable_step.assembly import clip_by_norm
from transect.portable_step.tracing import OPSET


def root_of_relu() -> dict[str, Any]:
    """Check a network whose gradient is infinite where ReLU lets nothing through."""

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.head = nn.Conv2d(2, 4, 3), nn.LazyLinear(CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.first(x).relu().sqrt().flatten(1))

    shape = {"x": (normal(2, 16, 16),), "y": classes(), "loss": cross_entropy, "rate": None}
    return asdict(check(Case(name="root", group="drawn", what="", build=Root, **shape)))


def clipped(gradient: list[float], bound: float) -> list[float]:
    """Return a gradient of float16 clipped by its norm."""
    graph = onnx.GraphProto(name="clip")
    writer = GraphWriter(graph)
    writer.input("g", "float16", (len(gradient),))
    writer.input("clip", "float64", ())
    made = clip_by_norm(writer, {"g": "g"}, "clip", {"g": "float16"})["g"]
    graph.output.append(value_info(made, "float16", (len(gradient),)))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)])
    given = {"g": np.array(gradient, np.float16), "clip": np.array(bound)}
    return ReferenceEvaluator(model).run(None, given)[0].tolist()


def operators(name: str) -> list[str]:
    """Return the operators of a case's graph."""
    one = CASES[name]
    return sorted({node.op_type for node in export(one, one.module()).graph.node})
