"""One export cell: export, check, and compare ONNX Runtime with the framework.

Writes `model.onnx`, `inputs/`, `expected/` (what the framework computes), `facts.json` and
`result.json` into its folder. `wrong-result` is a verdict too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.export import ExportCell
from transect.domain.errors import BadInput
from transect.onnx_models.exporters import EXPORTERS, INPUT, OUTPUT, Source
from transect.onnx_models.facts import write_facts
from transect.onnx_models.inspection import file_metrics, inspect_model
from transect.onnx_models.results import result, versions
from transect.onnx_models.running import open_session, run_session
from transect.onnx_models.tensors import write_tensors
from transect.onnx_models.tolerance import TOLERANCE_RULE, output_tolerance
from transect.runtimes.outputs import judge
from transect.training.inputs import load_arrays
from transect.training.models import TorchModel, no_module
from transect.training.workloads import WORKLOADS, model_of

MODEL = "model.onnx"
_BATCHES = (1, 7)
# Enough to compare outputs; test sets of images are larger.
_COMPARED_ROWS, _COMPARED_NUMBERS = 512, 2**22


def run_onnx(path: Path, x: np.ndarray, batch: int) -> np.ndarray:
    """Run all rows of x (n, ...) in batches, the last one partial; one thread, CPU."""
    return np.asarray(run_session(open_session(path), {INPUT: x}, batch)[OUTPUT])


def _shortened(x: np.ndarray, axes: Mapping[int, tuple[str, int]]) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield batches whose axes are shorter, with their shapes: half, and a single place."""
    for axis in axes:
        for size in (x.shape[axis] // 2, 1):
            rows = np.ascontiguousarray(np.take(x, range(size), axis))
            yield rows.shape, rows


def export(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Export one cell's trained model; return its result.

    Raises BadInput when the cell cannot be exported, and what the exporter, checker or runtime raise.
    """
    import torch

    from transect.training.frameworks._torch_modules import load_weights

    cell = ExportCell.of(**spec["cell"])
    with np.load(folders["weights"] / "weights.npz") as file:
        weights = {name: file[name] for name in file.files}
    stored = load_arrays(folders["data"], np.float32)["x_test"]
    rows = min(_COMPARED_ROWS, max(2, _COMPARED_NUMBERS // prod(stored.shape[1:])))
    x_test = stored[:rows]
    model, exporter = model_of(WORKLOADS.get(cell.workload), folders["data"]), EXPORTERS.get(cell.exporter)
    if reason := exporter.supports(cell) or no_module(model):
        return result(skipped=reason)
    assert isinstance(model, TorchModel)
    if x_test.shape[1:] != model.sample or len(x_test) < 2:
        raise BadInput(f"x_test has shape {x_test.shape}, {cell.workload} takes (n >= 2, *{model.sample})")
    torch.set_num_threads(cell.threads)
    module = load_weights(model.torch_module().eval(), weights, torch.float32)
    module.requires_grad_(False)
    x = np.ascontiguousarray(x_test, dtype=np.float32 if model.inputs == "float" else None)

    def computed(rows: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            outputs: np.ndarray = module(torch.from_numpy(rows)).numpy()
        return outputs

    expected = computed(x)

    path = out / MODEL
    begin = time.perf_counter()
    source = Source(model=module, examples={INPUT: x[:2]}, axes=model.axes, opset=spec.get("opset"))
    exporter.export(source, path)
    export_time_s = time.perf_counter() - begin

    sizes = {name: x.shape[axis] for axis, (name, _) in model.axes.items()}
    facts = inspect_model(path, sizes)
    tolerance = output_tolerance(model, module, x, expected)
    batches, shorter = (*_BATCHES, len(x)), dict(_shortened(x, model.axes))
    runs = [(run_onnx(path, x, batch), expected) for batch in batches]
    runs += [(run_onnx(path, rows, len(rows)), computed(rows)) for rows in shorter.values()]
    found, wanted = (np.concatenate(side) for side in zip(*runs, strict=True))
    verdict = judge({OUTPUT: found}, {OUTPUT: wanted}, tolerance.tolerance)
    write_tensors(out / "inputs", {INPUT: x})
    write_tensors(out / "expected", {OUTPUT: expected})
    write_facts(out, tolerance=tolerance.tolerance, batched=True, costs=facts["costs"])
    return result(
        wrong="; ".join(verdict.wrong),
        metrics=file_metrics(path, facts, export_time_s) | verdict.metrics(),
        details=facts
        | asdict(tolerance)
        | {
            "tolerance_rule": TOLERANCE_RULE,
            "batched": True,
            "batches_compared": list(batches),
            "shapes_compared": [list(shape) for shape in shorter],
            "rows_compared": len(x),
        },
        libraries=versions("python", "torch", "onnx", "onnxscript", "onnxruntime", "onnxruntime-gpu", "numpy"),
    )
