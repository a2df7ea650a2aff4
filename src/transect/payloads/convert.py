"""One conversion: a float32 file in a lower precision, and what that cost.

It takes `model` from an export or model cell, and `data` for a trained workload. Writes
`model.onnx`, the folders `inputs` and `expected` (what ONNX Runtime computes of the converted file),
`facts.json` and `result.json`; of dynamic ranges, `batch-SIZE` with outputs and facts of its
own for each of the spec's `batches`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.errors import FAULTS, BadInput
from transect.domain.terminal import say
from transect.onnx_models.comparison import differences, largest_differences
from transect.onnx_models.dynamic_tolerance import DYNAMIC_RULE, dynamic_tolerance, jiggled
from transect.onnx_models.exporters import INPUT
from transect.onnx_models.facts import batch_folder, facts_of_model, write_facts
from transect.onnx_models.lowered_tolerance import LOWERED_RULE, lowered_tolerance
from transect.onnx_models.lowering import calibration_rows, is_lowered, lower
from transect.onnx_models.models import Arrays, Outputs
from transect.onnx_models.results import refused, result, versions
from transect.onnx_models.running import open_session, run_session
from transect.onnx_models.tensors import NoTensor, read_tensors, write_tensors
from transect.training.inputs import load_arrays

# Executions that do not change the batch: optimisation and threads.
EXECUTIONS = (("off", 1), ("basic", 1), ("all", 2))
_JIGGLES = 8


class DynamicRuns:
    """Runs a converted file as other builds would, on `inputs`; `float32` are that file's outputs."""

    def __init__(self, path: Path, inputs: Arrays, float32: Outputs) -> None:
        self._session = open_session(path)
        self._others = [open_session(path, optimisation=o, threads=n) for o, n in EXECUTIONS]
        self._inputs, self._float32 = inputs, float32
        self._jiggled = [jiggled(inputs, seed) for seed in range(_JIGGLES)]

    def of(self, batch: int | None) -> tuple[Outputs, dict[str, Any]]:
        """Return the expected outputs in batches of a size, and what the record tells of them.

        Raises BadInput where outputs of one run are of other types or shapes than those of another.
        """
        expected = run_session(self._session, self._inputs, batch)
        runs = [run_session(session, self._inputs, batch) for session in self._others]
        runs += [run_session(self._session, inputs, batch) for inputs in self._jiggled]
        every: dict[str, dict[str, Any]] = {}
        distance = differences(self._float32, expected)
        spread = {name: max(differences(run, expected)[name] for run in runs) for name in distance}
        for name in distance:
            right = expected[name]
            assert isinstance(right, np.ndarray)
            if right.dtype.kind == "f" and right.size:
                outputs = [np.asarray(run[name]) for run in runs]
                every[name] = asdict(dynamic_tolerance(right, outputs, np.asarray(self._float32[name])))
            else:
                share = lowered_tolerance(right, spread[name], distance[name], "int8-dynamic")
                every[name] = {
                    "tolerance": share.tolerance,
                    "tolerance_from": share.source,
                    "spread": spread[name],
                    "distance": distance[name],
                }
        keys = dict.fromkeys(key for facts in every.values() for key in facts)
        return expected, {key: {name: facts[key] for name, facts in every.items() if key in facts} for key in keys}


def write_batches(
    out: Path, runs: DynamicRuns, sizes: Iterable[int], costs: dict[str, Any] | None
) -> dict[str, dict[str, Any]]:
    """Write `batch-SIZE/expected` and facts for each size; return what the record tells, by size.

    With fewer rows than a batch has, the runner gets them repeated, which gives the same ranges as
    all rows once.
    """
    facts_by_size = {}
    for size in sizes:
        folder = out / batch_folder(size)
        expected, facts = runs.of(size)
        write_tensors(folder / "expected", expected)
        write_facts(
            folder, tolerance=facts["tolerance"], mean_tolerance=facts.get("mean_tolerance"), batched=True, costs=costs
        )
        facts_by_size[str(size)] = facts
    return facts_by_size


MODEL = "model.onnx"
# As the export stage compares: test sets of images are larger.
_COMPARED_ROWS, _COMPARED_NUMBERS = 512, 2**22
_BATCH = 32
_BATCHES = (1, 7, 16, 32)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Samples:
    """What the two files are run on; `labels` and `test` (all test samples) of trained workloads."""

    inputs: Arrays
    calibration: Arrays
    batched: bool
    test: Any = None
    labels: np.ndarray | None = None


def _samples(model: Path, data: Path | None, *, batched: bool) -> _Samples:
    if data is None:
        parts = {name: read_tensors(model / name) for name in ("inputs", "calibration")}
        return _Samples(batched=batched, **parts)  # type: ignore[arg-type]
    arrays = load_arrays(data, np.float32)
    x = arrays["x_test"]
    rows = min(_COMPARED_ROWS, max(2, _COMPARED_NUMBERS // prod(x.shape[1:])))
    return _Samples(
        inputs={INPUT: np.ascontiguousarray(x[:rows], np.float32)},
        calibration={INPUT: calibration_rows(arrays["x_train"])},
        batched=True,
        test=x,
        labels=arrays["y_test"],
    )


def _accuracy(session: Any, samples: _Samples) -> float:
    assert samples.labels is not None
    name, right = next(iter(samples.inputs)), 0
    for start in range(0, len(samples.labels), _BATCH):
        x = np.asarray(samples.test[start : start + _BATCH], np.float32)
        found = session.run(None, {name: x})[0]
        right += int((found.argmax(axis=1) == samples.labels[start : start + _BATCH]).sum())
    return right / len(samples.labels)


def _agreement(found: Outputs, wanted: Outputs) -> float | None:
    """Return the share of rows with the same largest number in the first output that has classes."""
    for name, expected in wanted.items():
        if isinstance(expected, NoTensor) or expected.dtype.kind != "f" or expected.ndim < 2:
            continue
        given = found[name]
        assert isinstance(given, np.ndarray)
        return float((given.argmax(axis=-1) == expected.argmax(axis=-1)).mean())
    return None


def _batches(session: Any, samples: _Samples) -> list[Outputs]:
    """Run in parts: ranges that are found at run time depend on the batch."""
    batches = _BATCHES if samples.batched else ()
    return [run_session(session, samples.inputs, batch) for batch in batches]


def _others(path: Path, samples: _Samples) -> list[Outputs]:
    sessions = (open_session(path, optimisation=level, threads=n) for level, n in EXECUTIONS)
    return [run_session(session, samples.inputs) for session in sessions]


def _worst(runs: list[Outputs], wanted: Outputs) -> dict[str, float]:
    """Return the largest difference of each output. Raises BadInput where one is not finite."""
    worst = largest_differences(runs, wanted)
    if not all(np.isfinite(list(worst.values()))):
        raise BadInput("its outputs are not finite")
    return worst


def _tolerances(found: Outputs, spread: dict[str, float], wanted: Outputs, precision: str) -> dict[str, Any]:
    """Return the entries of `details` on how far another execution may lie from `found`."""
    distance = differences(found, wanted)
    rules = {
        name: lowered_tolerance(np.asarray(found[name]), spread[name], distance[name], precision) for name in spread
    }
    return {
        "tolerance": {name: rule.tolerance for name, rule in rules.items()},
        "tolerance_from": {name: rule.source for name, rule in rules.items()},
        "tolerance_rule": LOWERED_RULE,
        "spread": spread,
        "distance": distance,
    }


def _facts(path: Path, precision: str, costs: dict[str, Any] | None) -> dict[str, Any]:
    """Describe the converted file. Operations are those of the float32 file: as many, not as wide."""
    import onnx

    model = onnx.load(str(path))
    arrays = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    weights = sum(array.nbytes for array in arrays if array.dtype.kind == "f" or array.itemsize == 1)
    domains = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    return {
        "operators_by_type": dict(sorted(Counter(n.op_type for n in model.graph.node).items())),
        "opset_by_domain": domains,
        "ir_version": model.ir_version,
        "costs": None if costs is None else costs | {"weight_bytes": weights},
        "precision": precision,
    }


def _write_outputs(
    cell: Cell,
    samples: _Samples,
    sizes: list[int],
    found: Outputs,
    runs: list[Outputs],
    wanted: Outputs,
    costs: dict[str, Any] | None,
    out: Path,
) -> dict[str, Any]:
    """Write inputs, expected outputs and facts; return what `details` tell of the tolerances.

    `runs` are executions of the file beside `found`, `wanted` the float32 file's outputs.
    """
    dynamic = cell.precision == "int8-dynamic"
    if dynamic:
        executions = DynamicRuns(out / MODEL, samples.inputs, wanted)
        found, rules = executions.of(None)
        rules["tolerance_rule"] = DYNAMIC_RULE
        if samples.batched:
            rules["by_batch"] = write_batches(out, executions, sizes, costs)
    else:
        rules = _tolerances(found, _worst(runs, found), wanted, cell.precision)
    write_tensors(out / "inputs", samples.inputs)
    write_tensors(out / "expected", found)
    write_facts(
        out,
        tolerance=rules["tolerance"],
        mean_tolerance=rules.get("mean_tolerance"),
        batched=samples.batched,
        costs=costs,
        by_batch=dynamic and samples.batched,
    )
    return rules


def convert(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Convert one cell's file; return its result."""
    cell, sizes = Cell.of(**spec["cell"]), spec.get("batches", [])
    model, data = folders["model"], folders.get("data")
    model_facts = facts_of_model(model)
    samples = _samples(model, data, batched=model_facts["batched"])
    path, precision = out / MODEL, cell.precision
    batched = samples.batched
    try:
        how = lower(model / MODEL, path, precision, samples.calibration, batched=batched)
    except FAULTS as error:
        return refused(error, "the converter gives no file of this model")
    if not is_lowered(path, precision):
        return result(skipped=f"the converter finds nothing to convert to {precision}")
    before = open_session(model / MODEL)
    wanted = run_session(before, samples.inputs)
    # Where native code crashes, the tail of the log says what was under way.
    say("ONNX Runtime makes a session of the converted file")
    try:
        after = open_session(path)
        found = run_session(after, samples.inputs)
        parts = _batches(after, samples)
        apart = _worst([found, *parts], wanted)
        runs = [*parts, *_others(path, samples)]
        _worst(runs, found)
    except FAULTS as error:
        return refused(error, "ONNX Runtime does not run the converted file")
    values: dict[str, float | None] = {
        "model_bytes": path.stat().st_size,
        "max_abs_difference": max(apart.values()),
        "top1_agreement": _agreement(found, wanted),
    }
    facts = _facts(path, precision, model_facts["costs"])
    rules = _write_outputs(cell, samples, sizes, found, runs, wanted, facts["costs"], out)
    details = (
        facts
        | how
        | rules
        | {"differences": apart, "batched": batched, "model_bytes_before": (model / MODEL).stat().st_size}
    )
    if batched:
        details["rows_compared"] = len(next(iter(samples.inputs.values())))
    if samples.labels is not None:
        accuracies = [_accuracy(session, samples) for session in (before, after)]
        values |= {"accuracy": accuracies[1], "accuracy_loss": accuracies[0] - accuracies[1]}
        details |= {"accuracy_before": accuracies[0], "rows_scored": len(samples.labels)}
    return result(metrics=values, details=details, libraries=versions("onnx", "onnxruntime-gpu", "numpy"))
