"""Runs an ONNX file with ONNX Runtime's Python package on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.onnx_models.tensors import NoTensor


def open_session(path: Path, *, optimisation: str = "all", threads: int = 1) -> Any:
    """Return a session without warnings: files of old exporters cause many.

    `optimisation` of the graph: `all`, `basic` or `off`.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = {
        "all": levels.ORT_ENABLE_ALL,
        "basic": levels.ORT_ENABLE_BASIC,
        "off": levels.ORT_DISABLE_ALL,
    }[optimisation]
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run_session(
    session: Any, inputs: Mapping[str, np.ndarray], batch: int | None = None
) -> dict[str, np.ndarray | NoTensor]:
    """Return the outputs by name. With `batch` the rows are run in parts, the last one partial."""
    rows = len(next(iter(inputs.values()))) if batch else 0
    starts = range(0, rows, batch) if batch else [0]
    parts = []
    for start in starts:
        cut = slice(start, start + batch) if batch else ...
        parts.append(session.run(None, {name: array[cut] for name, array in inputs.items()}))
    found: dict[str, np.ndarray | NoTensor] = {}
    for place, output in enumerate(session.get_outputs()):
        values = [part[place] for part in parts]
        if all(isinstance(value, np.ndarray) for value in values):
            found[output.name] = np.concatenate(values) if batch else values[0]
        else:
            found[output.name] = NoTensor(str(output.type))
    return found
