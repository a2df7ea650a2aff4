"""One simulation of federated learning, each of its rounds held to the float64 reference.

On several ranks each takes a part of the turns, all come to the same models, and rank 0 tells. Leaves `samples.npz`,
series by update of the server, and `model.npz`, the last model's arrays.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.federate import FederateCell
from transect.domain.errors import Unsupported
from transect.domain.precisions import find_precision
from transect.federated.engines import ENGINES, Task, reason_to_skip
from transect.federated.exchange import Exchange, OverMpi
from transect.federated.flat import arrays_of, flat_of
from transect.federated.plan_file import FEDERATION, read_plan, training_rows
from transect.federated.rounds import simulate, update
from transect.onnx_models.results import result
from transect.payloads.federate_result import Course, Run, conclude
from transect.payloads.federate_scores import Scores, TestRows
from transect.training.inputs import load_weights
from transect.training.workloads import WORKLOADS, Parameters, model_of


def federate(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any] | None:
    """Simulate one cell; return its result, and None on ranks other than 0."""
    begin = time.perf_counter()
    cell = FederateCell.of(**spec["cell"])
    exchange = OverMpi() if cell.ranks > 1 else Exchange()
    try:
        return _simulated(begin, cell, exchange, spec, folders, out)
    except Unsupported as error:
        return result(skipped=str(error))
    except Exception:
        exchange.abandon()
        raise


def _simulated(
    begin: float, cell: FederateCell, exchange: Exchange, spec: dict[str, Any], folders: dict[str, Path], out: Path
) -> dict[str, Any] | None:
    model = model_of(WORKLOADS.get(cell.workload), folders["data"])
    parameters = Parameters.model_validate(spec["parameters"])
    if (reason := reason_to_skip(cell, model, parameters)) is not None:
        raise Unsupported(reason)
    dtype = np.dtype(find_precision(cell.precision).stored)
    x, y, data = training_rows(folders["data"], dtype)
    weights = {name: array.astype(dtype) for name, array in load_weights(folders["data"], cell.repeat).items()}
    plan = read_plan(cell, model, spec["seed"], folders["reference"] / FEDERATION, parameters.learning_rate)
    task = Task(
        cell=cell,
        model=model,
        parameters=parameters,
        weights=weights,
        x=x,
        y=y,
        folders=folders,
        out=out,
        programs=spec["run"].get("programs", {}),
    )
    engine = ENGINES.get(cell.engine)
    start = flat_of(model, weights)
    run = Run(
        scoring=Scores(TestRows(model, parameters, weights, cell.precision, data), plan, start, y),
        course=Course(folders["reference"], cell.precision),
    )
    with engine.session(task) as session:
        run.startup_s = time.perf_counter() - begin
        for made in simulate(plan, start, session, exchange):
            if exchange.rank == 0:
                run.see(made)
            if not np.isfinite(made.loss):
                break
        else:
            for restart in run.course.restarts:
                run.course.see_restart(restart, update(plan, restart.number, restart.before, session, exchange))
    peaks = np.zeros(exchange.size, np.int64)
    # Of a program that it started too.
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peaks[exchange.rank] = 1024 * max(resource.getrusage(kind).ru_maxrss for kind in kinds)
    run.peak_memory_bytes = exchange.total(peaks).tolist()
    if exchange.rank:
        return None
    np.savez(out / "model.npz", **arrays_of(model, run.last.model))  # type: ignore[arg-type]
    found = conclude(cell, plan, parameters, run, out)
    if plan.terms.personal.any():
        found["details"]["personal_tensors"] = sorted(plan.method.personal(plan.terms.settings, model))
    return found | {"libraries": engine.libraries(cell) | exchange.libraries()}
