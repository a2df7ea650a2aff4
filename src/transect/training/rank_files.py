"""What a rank leaves in its folder: series, facts and weights. Each file is whole or not there.

A file is written beside its place, synced to disk and renamed, so that a rank that dies later
(even in its libraries' own teardown) has left its result.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.files import write_atomic
from transect.domain.precisions import find_precision
from transect.training.raw_arrays import read_array

__all__ = ["RANK_SERIES", "rank_name", "read_rank", "write_arrays", "write_facts"]

# Of each step, in seconds, beside its `loss`.
RANK_SERIES = ("step", "compute", "communication", "under_way", "input")
_FACTS = ("rank", "host", "startup_s", "data_to_start_s", "peak_memory_bytes", "libraries")
_NO_USAGE: dict[str, Any] = {"energy": []}


def rank_name(rank: int) -> str:
    """Return what the names of a rank's files begin with."""
    return f"rank-{rank:03d}"


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an npz file and sync it. Raises OSError when there is no room; then nothing is left."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_facts(folder: Path, rank: int, facts: Mapping[str, Any]) -> None:
    """Write the rank's facts, its last file: it says that all the others are there."""
    write_atomic(folder / f"{rank_name(rank)}.json", json.dumps(facts))


def _foreign(folder: Path, facts: dict[str, Any], plan: dict[str, Any]) -> dict[str, np.ndarray]:
    """Read the arrays that facts of a trainer in another language describe; write rank 0's weights.

    What follows from the plan is added to the facts.
    """
    given = facts.pop("arrays")
    # Ours alone: a program of its own is handed no state to restart from.
    facts.pop("restarts", None)
    groups = {
        group: {name: read_array(entry, folder) for name, entry in given.get(group, {}).items()}
        for group in ("series", "weights", "checked")
    }
    if facts["rank"] == 0:
        names = {weight["name"] for weight in plan["weights"]}
        for group in ("weights", "checked"):
            if groups[group].keys() != names:
                raise ValueError(f"its '{group}' are {sorted(groups[group])}, not {sorted(names)}")
            write_arrays(folder / f"{group}.npz", groups[group])
    trained = sum(math.prod(w["shape"]) for w in plan["weights"] if w["trained"])
    number = find_precision(plan["cell"]["precision"])
    facts.setdefault("usage", _NO_USAGE)
    facts |= {
        "test_total": plan["data"]["y_test"]["shape"][0],
        "steps_per_epoch": plan["steps_per_epoch"],
        "parameters": trained,
        "gradient_bytes": trained * np.dtype(number.array).itemsize,
    }
    return groups["series"]


def read_rank(
    folder: Path, rank: int, plan: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and the series that a rank left; `plan` is what a foreign trainer was told.

    Raises OSError when a file is not there, and ValueError saying what is wrong with one.
    """
    facts = json.loads((folder / f"{rank_name(rank)}.json").read_text(encoding="utf-8"))
    missing = [name for name in _FACTS if name not in facts]
    if missing:
        raise ValueError(f"{rank_name(rank)}.json says nothing of {', '.join(missing)}")
    if plan is not None:
        series = _foreign(folder, facts, plan)
    else:
        with np.load(folder / f"{rank_name(rank)}.npz") as file:
            series = {name: file[name] for name in file.files}
    steps = len(series.get("loss", ()))
    wanted = (*RANK_SERIES, "loss", "epoch_end", *(("score_sum",) if rank == 0 else ()))
    missing = [name for name in wanted if name not in series]
    if missing or not steps:
        raise ValueError(f"rank {rank} left no series {', '.join(missing) or 'of any step'}")
    for name in RANK_SERIES:
        if series[name].shape != (steps,):
            raise ValueError(f"rank {rank}: {name} has shape {series[name].shape}, not ({steps},)")
    if plan is not None and steps != plan["steps"]:
        raise ValueError(f"rank {rank} left {steps} steps, it was told {plan['steps']}")
    return facts, series
