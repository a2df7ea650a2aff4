"""The numeric check: differences, tolerance files, tensors. Needs numpy only."""

from __future__ import annotations

import numpy as np
import pytest

from transect.domain.cell import Cell
from transect.onnx_models.exporters import EXPORTERS
from transect.runtimes.outputs import judge


def test_differences_are_the_largest_ones() -> None:
    reference = {"y": np.array([[1.0, 2.0], [4.0, 3.0]])}
    found = judge({"y": np.array([[1.0, 2.5], [4.0, 4.5]])}, reference, 2.0)
    assert (found.max_abs_difference, found.max_rel_difference, found.top1_agreement) == (1.5, 0.5, 0.5)
    assert not found.wrong and judge({"y": np.array([[1.0, np.nan], [4.0, 3.0]])}, reference, 1e30).wrong


@pytest.mark.parametrize("name", EXPORTERS.names())
def test_every_exporter_says_what_it_takes(name: str) -> None:
    exporter = EXPORTERS.get(name)
    cell = Cell.of(stage="generated-model", workload="mlp", framework=exporter.framework, exporter=name)
    assert exporter.supports(cell) is None
    trained = Cell.of(stage="export", workload="iris-mlp-ce", framework=exporter.framework, exporter=name)
    assert (exporter.supports(trained) is None) == (exporter.framework == "torch")
    assert "numpy" in (exporter.supports(cell.model_copy(update={"framework": "numpy"})) or "")
    assert "fp64" in (exporter.supports(cell.model_copy(update={"precision": "fp64"})) or "")
