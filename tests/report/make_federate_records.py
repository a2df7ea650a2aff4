"""Writes a made-up study of federated learning: SYNTHETIC records. No number was measured."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from make_records import HOSTILE, make_record, write_records

from transect.domain.axes.federate import FederateCell
from transect.domain.record import Cause, Record, Samples, Status

WRONG = {"status": Status.FAILED, "cause": Cause.WRONG_RESULT, "message": "the loss leaves the reference at update 3"}
SKIPPED = {"status": Status.SKIPPED, "cause": Cause.UNSUPPORTED, "message": "too few updates"}
DIVERGED = {"status": Status.FAILED, "cause": Cause.DIVERGED, "message": "the loss is not finite at update 2"}
SLOW = {"slowness": 1.0}
ROUNDS, TARGET = 20, 0.6


def run(
    repeat: int = 0,
    *,
    accuracy: float = 0.9,
    update_s: float = 0.02,
    turn: float = 1.0,
    ratio: float = 0.02,
    blind: int | None = None,
    disturbed: bool = False,
    fields: dict[str, Any] | None = None,
    **axes: Any,
) -> Record:
    """Make a simulation that nobody ran; it ends near `accuracy`, an update takes `update_s` and `turn` in simulated time."""
    given = {"engine": "loop", "framework": "numpy" if axes.get("engine", "loop") == "loop" else None, **axes}
    usual = {"aggregation": "fedavg", "partition": "iid", "clients": 20, "cohort": 5, "local_steps": 5, "batch": 10}
    cell = FederateCell(**{"workload": "digits-cnn", "rounds": ROUNDS, "repeat": repeat, **usual, **given})
    noise = 1 + (repeat - 2.5) / 2000
    scores = [noise * accuracy * (1 - math.exp(-(update + 2) / 4)) for update in range(cell.rounds)]
    times = [turn * noise * (update + 1) for update in range(cell.rounds)]
    together = cell.buffer or cell.cohort
    values = {
        "round_time": update_s * noise,
        "turns_per_second": together / update_s,
        "server_share": 0.05,
        "accuracy": scores[-1],
        "worst_clients_score": scores[-1] - 0.1,
        "peak_memory": 2.0**26,
        "sent_bytes": 2.0**10 * together,
        "equality_ratio": ratio,
        "weights_equality_ratio": ratio / 2,
    }
    reached = next((update for update, score in enumerate(scores) if score >= TARGET), None)
    if reached is not None:
        values |= {"rounds_to_quality": reached + 1, "simulated_time_to_quality": times[reached]}
    ended = fields or {}
    return make_record(
        cell,
        {} if ended else values,
        samples={
            "accuracy": Samples(unit="1", values=scores, count=cell.rounds),
            "simulated_time": Samples(unit="1", values=times, count=cell.rounds),
        },
        details={
            "quality": {"metric": "accuracy", "target": TARGET, "reached": reached is not None},
            "not_checkable_from": blind,
            "disturbed": disturbed,
            "staleness": {"median": 1.0, "most": 7} if cell.buffer else {"median": 0.0, "most": 0},
        },
        **ended,
    )


def runs(**given: Any) -> list[Record]:
    """Six runs that differ by a two-thousandth each."""
    return [run(repeat, **given) for repeat in range(6)]


MOMENTUM = {"aggregation": "fedavgm", "options": (("momentum", 0.5),)}


def aggregations(median: float = 0.7, momentum: float = 0.99, **given: Any) -> list[Record]:
    every = ((0.9, {}), (median, {"aggregation": "median"}), (momentum, MOMENTUM))
    return [record for accuracy, axes in every for record in runs(accuracy=accuracy, **axes, **given)]


def methods() -> list[Record]:
    pulled = {"method": "fedprox"}
    strong = {**pulled, "method_options": (("mu", 0.5),)}
    return [*runs(), *runs(accuracy=0.95, **pulled), *runs(accuracy=0.901, **strong)]


def waits(accuracy: float = 0.9, turn: float = 0.4) -> list[Record]:
    return [*runs(turn=2.0, **SLOW), *runs(accuracy=accuracy, turn=turn, buffer=2, rounds=50, **SLOW)]


def write_federate_study(root: Path) -> Path:
    """Write `root/federated`: aggregations by two engines, ranks, partitions, waiting, failures."""
    hostile = {name: f"{WRONG[name]} {HOSTILE}" if name == "message" else WRONG[name] for name in WRONG}
    return write_records(
        root / "federated",
        *aggregations(),
        *aggregations(engine="stacked", update_s=0.005),
        *runs(update_s=0.012, ranks_per_node=2),
        *runs(accuracy=0.7, partition="dirichlet-0.3"),
        *waits(),
        run(aggregation="trimmed-mean", ratio=70.0, fields=hostile),
        run(aggregation="krum", fields=SKIPPED),
    )
