"""One model cell: build, export, check, and compare ONNX Runtime with the framework.

Writes `model.onnx`, the folders `inputs`, `expected` (what the framework
computes) and `calibration` (other inputs), `facts.json` and `result.json`. An exporter that cannot do the model
is a verdict too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.errors import FAULTS, BadInput
from transect.onnx_models.accumulation import (
    IMPRECISE,
    MADE_TOLERANCE_RULE,
    imprecise_outputs,
    longest_accumulation,
    made_tolerances,
)
from transect.onnx_models.comparison import largest_differences
from transect.onnx_models.exporters import EXPORTERS, Exporter, Source
from transect.onnx_models.facts import write_facts
from transect.onnx_models.inspection import computes, file_metrics, inspect_model
from transect.onnx_models.models import MODELS, Arrays, Built, Outputs
from transect.onnx_models.results import refused, result, versions
from transect.onnx_models.running import open_session, run_session
from transect.onnx_models.tensors import write_tensors

MODEL = "model.onnx"
# Runs of one row, and of parts of which the last is smaller.
_BATCHES = (1, 7)
_LIBRARIES = (
    "python torch tensorflow-cpu keras mxnet scikit-learn onnx onnxscript tf2onnx skl2onnx onnxruntime-gpu numpy"
)


def _refused(what: str, error: BaseException) -> dict[str, Any]:
    return refused(error, what) | {"details": {"failed_at": what}, "libraries": versions(*_LIBRARIES.split())}


def _named(ends: list[dict[str, Any]], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return what is given under the file's names: the same ones, or by their places.

    Raises BadInput when the file has another number of them.
    """
    names = [end["name"] for end in ends]
    if len(names) != len(given):
        raise BadInput(f"the file has the {what} {names}, the model {list(given)}")
    if set(names) == set(given):
        return {name: given[name] for name in names}
    return dict(zip(names, given.values(), strict=True))


def _runs(path: Path, inputs: Arrays, batched: bool) -> list[Outputs]:
    session = open_session(path)
    return [run_session(session, inputs, batch) for batch in (None, *(_BATCHES if batched else ()))]


def _export(exporter: Exporter, built: Built, path: Path) -> tuple[float, dict[str, Any]]:
    """Write the file; return how long that took, in seconds, and what is inside."""
    examples = {name: x[:2] if built.batched else x for name, x in built.inputs.items()}
    source = Source(
        model=built.model, examples=examples, outputs=tuple(built.outputs), batched=built.batched, options=built.options
    )
    begin = time.perf_counter()
    exporter.export(source, path)
    return time.perf_counter() - begin, inspect_model(path)


def make(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Make one cell into `out`; return its result. Raises what building the model raises."""
    cell = Cell.of(**spec["cell"])
    framework = str(cell.get("framework"))
    if framework.startswith("keras-"):
        # Read when Keras is imported.
        os.environ["KERAS_BACKEND"] = framework.removeprefix("keras-")
    model, exporter = MODELS.get(str(cell.workload)), EXPORTERS.get(cell.get("exporter"))
    if reason := model.supports(cell) or exporter.supports(cell):
        return result(skipped=reason)
    built = model.build(exporter.framework, cell.get("exporter"), spec["seed"])
    path = out / MODEL
    try:
        export_time_s, facts = _export(exporter, built, path)
        inputs = _named(facts["input"], built.inputs, "inputs")
        expected: Outputs = _named(facts["output"], built.outputs, "outputs")
    except FAULTS as error:
        return _refused("the exporter gives no valid file of this model", error)
    try:
        runs = _runs(path, inputs, built.batched)
    except FAULTS as error:
        return _refused("ONNX Runtime does not run the file", error)
    try:
        apart = largest_differences(runs, expected)
    except BadInput as error:
        message = f"ONNX Runtime's outputs are not those of {exporter.framework}: {error}"
        return result(wrong=message, libraries=versions(*_LIBRARIES.split()))
    write_tensors(out / "inputs", inputs)
    write_tensors(out / "expected", expected)
    write_tensors(out / "calibration", _named(facts["input"], built.calibration, "inputs"))
    exact = None if built.exact is None else _named(facts["output"], built.exact, "outputs")
    longest = _longest(path)
    tolerances = made_tolerances(expected, exact, longest, computes=computes(facts["costs"]))
    batched = built.batched and facts["dynamic_batch"]
    write_facts(out, tolerance=tolerances, batched=batched, costs=facts["costs"])
    imprecise = imprecise_outputs(expected, exact, longest)
    wrong = _what_is_wrong(exporter.framework, imprecise, apart, tolerances)
    return result(
        wrong=wrong,
        metrics=file_metrics(path, facts, export_time_s) | {"max_abs_difference": max(apart.values())},
        details=facts
        | {
            "tolerance": tolerances,
            "tolerance_rule": MADE_TOLERANCE_RULE,
            "differences": {n: d if np.isfinite(d) else str(d) for n, d in apart.items()},
            "batched": batched,
        },
        libraries=versions(*_LIBRARIES.split()),
    )


def _what_is_wrong(
    framework: str, imprecise: dict[str, float], apart: dict[str, float], tolerances: dict[str, float]
) -> str:
    if imprecise:
        return (
            f"{framework} does not compute in float32: its distance to float64 is, in sqrt(K+1) u * "
            f"output_scale, {_pairs(imprecise)}, and rounding gives at most {IMPRECISE}"
        )
    if all(apart[name] <= tolerance for name, tolerance in tolerances.items()):
        return ""
    given, most = _pairs(apart), _pairs(tolerances)
    return f"ONNX Runtime differs from {framework}: {given}, the tolerance is {most}"


def _longest(path: Path) -> int:
    import onnx

    return longest_accumulation(onnx.shape_inference.infer_shapes(onnx.load(str(path))).graph)


def _pairs(numbers: dict[str, float]) -> str:
    return ", ".join(f"{name} {number:.3g}" for name, number in numbers.items())
