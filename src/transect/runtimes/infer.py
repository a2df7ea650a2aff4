"""One inference cell: prepare inputs, start the runner, compare its outputs, write the result.

`python -m transect.runtimes.infer --spec … --export DIR --weights … --out … --python …`. The spec
holds `cell` and optionally `limits` {"warmup", "min_runs", "max_seconds"}. `--export` is the
folder of an export cell of the same workload: model, inputs, expected outputs and tolerance.
Exit code 0 when the verdict stands in `result.json` (`skipped` and `wrong-result` included),
1 when the runner failed or something was raised.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.errors import FAULTS, BadInput
from transect.domain.files import write_atomic
from transect.domain.record import INLINE_SAMPLES, Cause, Status
from transect.onnx_models.comparison import compare
from transect.onnx_models.exporters import INPUT, OUTPUT
from transect.onnx_models.results import RESULT, result, write_fault, write_result
from transect.onnx_models.tensors import describe, read_tensor, write_header, write_tensor
from transect.runtimes import RUNTIMES
from transect.stages.infer.cell import InferCell
from transect.training.costs import run_costs
from transect.training.workloads import WORKLOADS

__all__ = ["LIMITS", "conclude", "infer_cell", "main", "prepare_run"]

# What the runner writes about itself.
RECORD = "runner.json"

LIMITS: dict[str, float] = {"warmup": 20, "min_runs": 100, "max_seconds": 1.0}

# Fewer samples put the 95th percentile on a handful of values.
_P95_SAMPLES = 400
_NANO = 1e-9
_SKIPPED = 3
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def _prepare_inputs(export: Path, folder: Path, batch: int) -> None:
    """Write the runner's input header.

    The test set is used where it lies. One that is smaller than the batch is repeated up to one
    full batch.
    """
    x, expected = read_tensor(export, INPUT), read_tensor(export, OUTPUT)
    if len(x) != len(expected) or not len(x):
        raise BadInput(f"{export}: {len(x)} input rows, {len(expected)} expected outputs")
    if len(x) >= batch:
        file = json.loads((export / "header.json").read_text())["tensors"]
        names = {entry["name"]: entry["file"] for entry in file}
        tensor = describe(INPUT, x.shape, (export / names[INPUT]).resolve())
    else:
        rows = np.arange(batch) % len(x)
        tensor = write_tensor(folder, INPUT, x[rows], "inputs.bin")
    write_header(folder, [tensor], batch=batch)


def _expected(export: Path, batch: int) -> np.ndarray:
    """Return the framework's outputs for the rows of `_prepare_inputs`."""
    expected = read_tensor(export, OUTPUT)
    return expected if len(expected) >= batch else expected[np.arange(batch) % len(expected)]


def _tolerance(export: Path) -> float:
    path = export / RESULT
    try:
        return float(json.loads(path.read_text())["details"]["tolerance"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{path}: holds no tolerance ({type(error).__name__}: {error}); "
            "--export must be the folder of a finished export cell"
        ) from None


def _model(cell: InferCell, uses_exporter: bool, export: Path, weights: Path, out: Path) -> Path:
    if uses_exporter:
        return export / "model.onnx"
    path = out / "model.json"
    text = json.dumps({"workload": cell.workload, "weights": str(weights.resolve())})
    write_atomic(path, text + "\n")
    return path


def _start(command: list[str], threads: int) -> int:
    """Run the program with this process's output streams; return its exit code."""
    environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads))
    return subprocess.run(command, env=environment, check=False).returncode


def _read_record(path: Path, code: int) -> dict[str, Any]:
    """Return the runner's record, or a failed one when it left none."""
    try:
        record = json.loads(path.read_text())
        if isinstance(record, dict):
            if record.get("status") == "ok" and code != 0:
                return _no_record(code, "after it wrote its record")
            return record
    except (OSError, ValueError):
        pass
    return _no_record(code, "without a readable record")


def _no_record(code: int, when: str) -> dict[str, Any]:
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    # SIGKILL and SIGTERM come from outside; SIGSEGV, SIGABRT and the like are its own.
    cause = Cause.KILLED if code in (-9, -15) else Cause.CRASH
    return {"status": "failed", "cause": cause.value, "message": f"the runner {ended} {when}"}


def _samples(values: np.ndarray, out: Path) -> dict[str, Any]:
    """Return the `latency` series, in seconds; a long one goes into `samples.npz`."""
    if len(values) <= INLINE_SAMPLES:
        return {"unit": "s", "values": values.tolist(), "count": len(values)}
    np.savez(out / "samples.npz", latency=values)
    return {"unit": "s", "file": "samples.npz", "key": "latency", "count": len(values)}


def _time_metrics(record: dict[str, Any], batch: int) -> list[dict[str, Any]]:
    runs = record["run_ns"]
    latency_s = statistics.median(runs) * _NANO
    values = {
        "latency": latency_s,
        "throughput": batch / latency_s,
        "session_time": record["session_ns"] * _NANO,
        "bind_time": statistics.median(record["bind_ns"]) * _NANO,
        "copy_time": statistics.median(record["copy_ns"]) * _NANO,
    }
    if len(runs) >= _P95_SAMPLES:
        values["latency_p95"] = sorted(runs)[math.ceil(0.95 * len(runs)) - 1] * _NANO
    return [{"name": name, "value": value} for name, value in values.items()]


def _costs(cell: InferCell, export: Path) -> dict[str, Any]:
    """Return operations and bytes of a run: from the ONNX graph where the runtime executes one.

    Bytes are the least traffic: weights and inputs read once, outputs written once.
    """
    if cell.exporter is None:
        workload = WORKLOADS.get(cell.workload)
        costs = run_costs(workload.layers, workload.sample, cell.batch, cell.precision)
        return {**costs, "costs_from": "layers"}
    details = json.loads((export / "record.json").read_text(encoding="utf-8"))["details"]
    graph = details["costs"]
    return {
        "flops_per_run": cell.batch * graph["flops_per_sample"],
        "bytes_per_run": graph["weight_bytes"] + cell.batch * graph["end_bytes_per_sample"],
        "costs_from": "ONNX graph",
        "operators_without_rule": graph["operators_without_rule"],
    }


def _judge(
    cell: InferCell,
    record: dict[str, Any],
    expected: np.ndarray,
    tolerance: float,
    out: Path,
    export: Path,
) -> dict[str, Any]:
    """Make the result of a run that ended well: no time stands where the outputs are wrong."""
    compared = compare(read_tensor(out / "outputs", OUTPUT), expected)
    good = compared.within(tolerance)
    return result(
        status=Status.OK if good else Status.FAILED,
        cause=None if good else Cause.WRONG_RESULT,
        message=""
        if good
        else f"outputs differ from the framework's by up to {compared.max_abs_difference:.3g}, "
        f"the tolerance is {tolerance:.3g}",
        metrics=(_time_metrics(record, cell.batch) if good else [])
        + compared.metrics("max_abs_difference", "top1_agreement"),
        samples={"latency": _samples(np.array(record["run_ns"]) * _NANO, out)} if good else {},
        details={
            **{key: record[key] for key in ("session_options", "runtime_version")},
            **{key: record[key] for key in ("provider_used", "stop_reason")},
            **_costs(cell, export),
            "runs": len(record["run_ns"]),
            "rows_compared": len(expected),
            "tolerance": tolerance,
        },
        libraries={f"runtime {cell.runtime}": str(record["runtime_version"])},
    )


def prepare_run(
    spec: dict[str, Any], cell: InferCell, export: Path, weights: Path, out: Path, python: str
) -> list[str]:
    """Write what the runner reads into `out`; return its argument list.

    Raises BadInput when the export folder cannot be used.
    """
    runtime = RUNTIMES.get(cell.runtime)
    limits = LIMITS | spec.get("limits", {})
    inputs, outputs, record_file = out / "inputs", out / "outputs", out / RECORD
    _prepare_inputs(export, inputs, cell.batch)
    for stale in (record_file, outputs / "header.json"):
        stale.unlink(missing_ok=True)
    options = {
        "inputs": inputs,
        "outputs": outputs,
        "provider": cell.provider,
        "threads": cell.threads,
        "warmup": int(limits["warmup"]),
        "min-runs": int(limits["min_runs"]),
        "max-seconds": limits["max_seconds"],
        "record": record_file,
    }
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    model = _model(cell, runtime.uses_exporter, export, weights, out)
    return runtime.command(cell, python, model, arguments)


def conclude(cell: InferCell, export: Path, out: Path, code: int) -> dict[str, Any]:
    """Return the result of a run whose program ended with `code`.

    Raises BadInput when it ran on another execution provider than it was asked for.
    """
    record = _read_record(out / RECORD, code)
    if record["status"] == "skipped":
        return result(
            status=Status.SKIPPED, cause=Cause.UNSUPPORTED, message=record.get("reason", "?")
        )
    if record["status"] != "ok":
        return result(
            status=Status.FAILED,
            cause=Cause(record.get("cause", "crash")),
            message=record.get("message", f"the runner ended with exit code {code}"),
        )
    if record["provider_used"] != cell.provider:
        raise BadInput(
            f"runner '{cell.runtime}' ran on {record['provider_used']}, "
            f"the cell asks for {cell.provider}"
        )
    expected = _expected(export, cell.batch)
    return _judge(cell, record, expected, _tolerance(export), out, export)


def infer_cell(
    spec: dict[str, Any],
    export: Path,
    weights: Path,
    out: Path,
    python: str,
    wrap: Sequence[str] = (),
) -> dict[str, Any]:
    """Run one inference cell into `out`; return its result.

    Raises BadInput when the cell or the export folder cannot be used.
    """
    cell = Cell.of(**spec["cell"])
    if reason := RUNTIMES.get(cell.runtime).supports(cell):
        return result(status=Status.SKIPPED, cause=Cause.UNSUPPORTED, message=reason)
    _tolerance(export)
    command = [*wrap, *prepare_run(spec, cell, export, weights, out, python)]
    return conclude(cell, export, out, _start(command, cell.threads))


def main(arguments: list[str] | None = None) -> int:
    """Run one inference cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--export", type=Path, required=True, help="folder of an export cell")
    parser.add_argument("--weights", type=Path, required=True, help="INDEX.weight, INDEX.bias")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", required=True, help="interpreter of the environment")
    parser.add_argument(
        "--wrap", default="[]", help="JSON list put before the runner: modules, a container"
    )
    given = parser.parse_args(arguments)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        spec = json.loads(given.spec.read_text())
        wrap = json.loads(given.wrap)
        result = infer_cell(spec, given.export, given.weights, given.out, given.python, wrap)
        write_result(given.out, result)
    except FAULTS as error:
        return write_fault(given.out, error)
    return 1 if result["status"] == "failed" and result["cause"] != Cause.WRONG_RESULT else 0


if __name__ == "__main__":
    sys.exit(main())
