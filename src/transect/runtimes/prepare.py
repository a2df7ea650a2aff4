"""What a runner is given: inputs, session options, arrival times, its argument list."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.infer import InferCell
from transect.domain.cell import GPU_PROVIDERS
from transect.domain.errors import BadInput, Unsupported
from transect.domain.files import digest, write_atomic
from transect.onnx_models.exporters import OUTPUT
from transect.onnx_models.facts import facts_of_model, of_batch
from transect.onnx_models.tensors import NoTensor, read_tensors, write_tensors
from transect.runtimes import RUNTIMES
from transect.runtimes._cuda import no_cuda_reason
from transect.runtimes.given import Given, read_given
from transect.runtimes.programs import start_command
from transect.runtimes.serving_plans import Serving
from transect.training.own_workload import definition_of
from transect.training.workloads import WORKLOADS, model_of

PROFILE = "profile"

LIMITS: dict[str, float] = {"warmup": 20, "min_runs": 100, "max_seconds": 1.0, "load_seconds": 2.0}

Tensors = Mapping[str, np.ndarray | NoTensor]


def _repeated(tensors: Tensors, batch: int) -> Tensors:
    """Repeat rows up to one full batch where there are fewer."""
    return {
        name: value if isinstance(value, NoTensor) or len(value) >= batch else value[np.arange(batch) % len(value)]
        for name, value in tensors.items()
    }


def expected_outputs(model: Path, cell: InferCell, facts: Mapping[str, Any]) -> Tensors:
    """Return what the framework computed for the rows that the runner gets.

    Of a file whose outputs depend on the batch, what was computed in batches of the cell's size.
    """
    expected = read_tensors(of_batch(model, cell.batch) / "expected")
    return _repeated(expected, cell.batch) if facts["batched"] else expected


def _inputs(model: Path, folder: Path, cell: InferCell, facts: Mapping[str, Any]) -> tuple[Path, int]:
    """Return the folder of the inputs, where they lie if they are enough, and the batch, 0 without one."""
    tensors, _ = read_given(model / "inputs")
    if not facts["batched"]:
        if cell.batch != 1:
            raise Unsupported(f"{cell.workload} has no rows to make batches of {cell.batch} from")
        return model / "inputs", 0
    rows = {tensor.shape[0] if tensor.shape else 0 for tensor in tensors}
    if len(rows) != 1 or 0 in rows:
        raise BadInput(f"{model / 'inputs'}: expected as many rows in each tensor, got {sorted(rows)}")
    if rows.pop() >= cell.batch:
        return model / "inputs", cell.batch
    write_tensors(folder, _repeated(read_tensors(model / "inputs"), cell.batch))
    return folder, cell.batch


def check_model(path: Path, inputs: Sequence[Given]) -> str:
    """Return the output's name. Raises BadInput unless `{"workload", "weights"}` in a file names a workload, and arrays
    and inputs of its model.

    The inputs are one tensor, rows of the model's samples: float32, or int64 of words.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        model = model_of(WORKLOADS.get(told["workload"]), Path(told["data"]) if "data" in told else None)
        with np.load(told["weights"]) as file:
            given = {name: file[name].shape for name in file.files}
    except (OSError, EOFError, LookupError, TypeError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise BadInput(f'{path}: expected {{"workload", "weights"}}: {type(error).__name__}: {error}') from error
    wanted = {weight.name: tuple(weight.shape) for weight in model.weight_shapes()}
    if wrong := sorted(name for name in wanted | given if wanted.get(name) != given.get(name)):
        raise BadInput(
            f"{path}: weights do not fit the model: '{wrong[0]}' has shape {given.get(wrong[0], 'none')}, "
            f"expected {wanted.get(wrong[0], 'no such weight')}"
        )
    dtype, sample = "float32" if model.inputs == "float" else model.inputs, tuple(model.sample)
    if [(tensor.dtype, tensor.shape[1:]) for tensor in inputs] != [(dtype, sample)]:
        told = ", ".join(f"{tensor.dtype} {list(tensor.shape[1:])}" for tensor in inputs)
        raise BadInput(f"{path}: the workload takes one {dtype} tensor, rows of {list(sample)}; got {told}")
    # What the exporters call so.
    return OUTPUT


def _model_file(cell: InferCell, model: Path, beside: Mapping[str, Path], out: Path) -> Path:
    if RUNTIMES.get(cell.runtime).uses_exporter:
        return model / "model.onnx"
    if "weights" not in beside:
        raise BadInput(f"runtime '{cell.runtime}' builds the model itself, and there are no weights")
    path = out / "model.json"
    paths = {name: str(path.resolve()) for name, path in beside.items()}
    described = {"workload": cell.workload} | paths | definition_of(cell.workload)
    text = json.dumps(described)
    write_atomic(path, text + "\n")
    return path


def arrival_times(rate: float, seconds: float) -> np.ndarray:
    """Draw when requests arrive: a Poisson process of `rate` per second, in nanoseconds, int64.

    The same for every runtime: the generator starts from the rate and the time alone. Drawn gaps are
    scaled so that their mean is that of the rate, which a short draw would miss by a tenth.
    """
    generator = np.random.default_rng(int(digest([f"{rate!r} {seconds!r}"])[:12], 16))
    ends = np.cumsum(generator.exponential(size=max(1, round(rate * seconds))))
    times: np.ndarray = (ends * (len(ends) / rate * 1e9 / ends[-1])).astype("<i8")
    return times


def prepare_run(
    spec: Mapping[str, Any], cell: InferCell, model: Path, beside: Mapping[str, Path], out: Path, python: str
) -> list[str]:
    """Write what the runner reads into `out`; return its argument list.

    `model` is the folder of a cell that makes models; `beside` has `weights`, a file, and of a user's module `data`, the
    data stage's folder, for a runtime that builds the model. Raises BadInput when it cannot be used, and
    Unsupported when it has no batch of the cell's size.
    """
    runtime, facts = RUNTIMES.get(cell.runtime), facts_of_model(model)
    limits = LIMITS | spec.get("limits", {})
    if cell.provider in GPU_PROVIDERS and (reason := no_cuda_reason()):
        raise Unsupported(reason)
    inputs, batch = _inputs(model, out / "inputs", cell, facts)
    for stale in out.glob(f"{PROFILE}_*"):
        stale.unlink(missing_ok=True)
    arrivals = out / "arrivals.bin"
    if cell.load is not None:
        arrivals.write_bytes(arrival_times(cell.load, limits["load_seconds"]).tobytes())
    serving = Serving(
        model=_model_file(cell, model, beside, out),
        inputs=inputs,
        batch=batch,
        outputs=out / "outputs",
        out=out,
        provider=cell.provider,
        options=spec["options"],
        warmup=int(limits["warmup"]),
        min_runs=int(limits["min_runs"]),
        max_seconds=limits["max_seconds"],
        profile=out / PROFILE if cell.load is None and runtime.uses_exporter else None,
        arrivals=None if cell.load is None else arrivals,
        sessions=cell.sessions,
        check=None if runtime.uses_exporter else check_model,
    )
    return start_command(cell.runtime, python, serving.plan())
