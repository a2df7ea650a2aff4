"""Makes export and infer cells for the tests, in real processes; what several tests read is made once."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from checkouts import environment_python
from factories import plan_study
from payload_calls import payload_module
from transect.domain.axes.infer import InferCell
from transect.domain.errors import FAULTS, error_facts
from transect.onnx_models.exporters import EXPORTERS
from transect.runtimes import RUNTIMES
from transect.runtimes.infer import conclude
from transect.runtimes.options import session_options, thread_variables
from transect.runtimes.prepare import prepare_run
from transect.training.workloads import WORKLOADS, model_of
from warm import warm

SOURCE = Path(__file__).resolve().parents[2] / "src"
ROWS = 50
SEED = 20261120
# Who has a session for inference alone: ONNX Runtime training has none.
SERVING = [name for name in RUNTIMES if RUNTIMES.get(name).uses_exporter and not name.startswith("ort-training")]


def make_inputs(folder: Path, workload: str) -> tuple[Path, Path]:
    """Write `weights.npz` and `data.npz` of a workload, from fixed seeds.

    Batch norms are as after training: what they begin with hides a wrong one.
    """
    model = model_of(WORKLOADS.get(workload))
    generator = np.random.default_rng(7)
    if model.inputs == "float":
        x = generator.normal(size=(ROWS, *model.sample))
    else:
        x = np.stack([model.draw(generator)[0] for _ in range(ROWS)])
    y = np.zeros(ROWS, np.int64)
    weights = model.initial_weights(3)
    for name in [name for name in weights if name.endswith("running_var")]:
        for part in ("weight", "bias", "running_mean", "running_var"):
            array = weights[name.replace("running_var", part)]
            array += generator.uniform(-0.5, 0.5, array.shape)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **weights)  # type: ignore[arg-type]
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    return folder / "weights.npz", folder


def run_payload(python: str, out: Path, spec: dict[str, Any], **folders: Path) -> Any:
    """Run one payload in a fork of its environment's warm process; return (exit code, result, stderr)."""
    _write_spec(out, spec)
    return _result(warm(python).run(*payload_module(spec["cell"]["stage"], out, **folders)), out)


def run_infer(out: Path, spec: dict[str, Any], model: Path, python: str, weights: Path | None = None) -> Any:
    """Run an infer cell as its stage does; return (exit code, result, what the runner said)."""
    out.mkdir(parents=True, exist_ok=True)
    cell, log = InferCell.of(**spec["cell"]), ""
    try:
        beside = {} if weights is None else {"weights": weights}
        command = prepare_run(spec, cell, model, beside, out, python)
        started_ns = time.monotonic_ns()
        variables = os.environ | thread_variables(cell.threads)
        ended = subprocess.run(
            command, env=variables, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        log = ended.stdout
        found = conclude(cell, model, out, ended.returncode, python=python, log=log, started_ns=started_ns)
    except FAULTS as error:
        found = {"status": "failed", **error_facts(error)}
    return int(found["status"] == "failed" and found["cause"] != "wrong-result"), found, log


def _write_spec(out: Path, spec: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "spec.json").write_text(json.dumps(spec))


def _result(done: subprocess.CompletedProcess[str], out: Path) -> Any:
    return done.returncode, json.loads((out / "result.json").read_text()), done.stderr


def plan_models(folder: Path, sections: str) -> Any:
    """Plan a study of these sections."""
    return plan_study(folder, f"name: ported\n{sections}\n", name="ported.yaml")


def make_model(folder: Path, model: str, exporter: str) -> Any:
    """Run a model cell into `folder`; return (code, result, stderr)."""
    chosen = EXPORTERS.get(exporter)
    python = environment_python(chosen.environment, folder.parent)
    cell = {"stage": "generated-model", "workload": model, "framework": chosen.framework, "exporter": exporter}
    spec = {"cell": cell, "seed": SEED}
    return run_payload(python, folder, spec)


def export(python: str, folder: Path, workload: str, exporter: str, **more: Any) -> Any:
    """Run an export cell into `folder/exporter`."""
    weights, data = make_inputs(folder, workload)
    cell = {"stage": "export", "workload": workload, "framework": "torch", "exporter": exporter}
    spec = {"cell": cell, "parameters": {}, **more}
    return run_payload(python, folder / exporter, spec, weights=weights.parent, data=data)


def infer(
    python: str, folder: Path, exporter: str, out: str = "infer", options: dict[str, Any] | None = None, **axes: Any
) -> Any:
    """Run an infer cell into `folder/out` on the export in `folder/exporter`."""
    cell = {"stage": "infer", "workload": "digits-cnn", "runtime": "python", "provider": "cpu", "batch": 16}
    cell |= axes
    given = options or session_options("equal", int(cell.get("threads", 1)), "cpu", {})
    spec = {"cell": cell, "options": given, "limits": {"warmup": 2, "min_runs": 20, "max_seconds": 0.05}}
    return run_infer(folder / out, spec, folder / exporter, python, folder / "weights.npz")


def metrics(result: dict[str, Any]) -> dict[str, float]:
    """Return the metrics by name."""
    return {entry["name"]: entry["value"] for entry in result["metrics"]}
