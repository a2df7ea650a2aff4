"""`federation.npz`: who has which rows, who trains when, and how long turns take. Drawn once, read by every engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.federate import Federation
from transect.domain.options import settings
from transect.federated.aggregations import AGGREGATIONS
from transect.federated.flat import named_part, trained_part
from transect.federated.methods import METHODS, Terms
from transect.federated.partitions import Clients, dealt, durations
from transect.federated.rounds import Plan
from transect.federated.timetable import Timetable, buffered, in_rounds
from transect.training.inputs import load_arrays
from transect.training.models import Model

FEDERATION = "federation.npz"
# The reference's path, beside it.
PATH = "path.npz"


def training_rows(folder: Path, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return x and y of the rows that clients have, and all arrays: those kept for devices, else those that train."""
    data = load_arrays(folder, dtype)
    part = "device" if "x_device" in data else "train"
    return np.asarray(data[f"x_{part}"][:]), data[f"y_{part}"], data


def seed_of(seed: int, repeat: int) -> int:
    """Return the key of a repeat's draws: the study's seed is the low word, the repeat is added to the high one."""
    return seed + (repeat << 32)


def plan_of(cell: Federation, model: Model, seed: int, y: np.ndarray, data: Mapping[str, Any], rate: float) -> Plan:
    """Draw a plan. Raises BadInput where rows cannot be dealt out so."""
    key = seed_of(seed, cell.repeat)
    clients = dealt(cell.partition, y, cell.clients, key, data.get("client_device"))
    taken = durations(cell.clients, cell.slowness, key)
    if cell.buffer is None:
        table = in_rounds(cell.rounds, cell.cohort, taken, key)
    else:
        table = buffered(cell.rounds, cell.cohort, cell.buffer, taken, key)
    return _plan(cell, model, key, clients, table, rate)


def write_plan(plan: Plan, file: Path) -> None:
    """Write what was drawn."""
    table, clients = plan.timetable, plan.clients
    whole = {"rows": clients.rows, "starts": clients.starts}
    whole |= {"client": table.client, "number": table.number, "version": table.version}
    # Half as long: no file has 2^31 rows, no simulation as many turns.
    np.savez(file, time=table.time, **{name: array.astype(np.int32) for name, array in whole.items()})  # type: ignore[arg-type]


def read_plan(cell: Federation, model: Model, seed: int, file: Path, rate: float) -> Plan:
    """Return the plan that a cell's reference has drawn; `rate` is the clients' learning rate."""
    with np.load(file) as arrays:
        clients = Clients(rows=arrays["rows"], starts=arrays["starts"])
        table = Timetable(**{name: arrays[name] for name in ("client", "number", "version", "time")})
    return _plan(cell, model, seed_of(seed, cell.repeat), clients, table, rate)


def _plan(cell: Federation, model: Model, key: int, clients: Clients, table: Timetable, rate: float) -> Plan:
    aggregation, method = AGGREGATIONS.get(cell.aggregation), METHODS.get(cell.method)
    chosen = settings(method.options, cell.method_options)
    terms = Terms(
        settings=chosen,
        rate=rate,
        steps=cell.local_steps,
        trained=trained_part(model),
        personal=named_part(model, method.personal(chosen, model)),
    )
    return Plan(
        clients=clients,
        timetable=table,
        aggregation=aggregation,
        settings=settings(aggregation.options, cell.options),
        method=method,
        terms=terms,
        seed=key,
        batch=cell.batch,
    )
