"""What a rank leaves in its folder: series, facts and weights. Each file is whole or not there.

A file is written beside its place, synced to disk and renamed, so that a rank that dies later
(even in its libraries' own teardown) has left its result.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.files import write_atomic
from transect.domain.precisions import find_precision
from transect.training.raw_arrays import read_array

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


def write_place(folder: Path, rank: int, details: Mapping[str, Any]) -> None:
    """Write who a rank is before it trains, for the case that it never says it itself."""
    place = {"rank": rank, "pid": os.getpid()}
    place |= {name: details[name] for name in ("stage", "stages", "layers") if name in details}
    write_atomic(folder / f"{rank_name(rank)}.place.json", json.dumps(place))


def read_places(folder: Path) -> list[dict[str, Any]]:
    """Return what the ranks of a cell have written by `write_place`."""
    paths = sorted(folder.glob("rank-*.place.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def rank_place(rank: int, places: Iterable[Mapping[str, Any]]) -> str:
    """Return what messages call a rank. One of several stages has a list of their layers.

    >>> rank_place(1, [{"rank": 1, "pid": 7, "stage": 1, "layers": [4, 8]}])
    'rank 1, stage 1 (layers 4 to 7)'
    >>> rank_place(0, [{"rank": 0, "pid": 7, "stages": [0, 3], "layers": [[0, 2], [5, 6]]}])
    'rank 0, stages 0 and 3 (layers 0 to 1, 5)'
    """
    for place in places:
        stages = place.get("stages") or [place[name] for name in ("stage",) if name in place]
        if place["rank"] == rank and stages and "layers" in place:
            layers = place["layers"]
            spans = layers if isinstance(layers[0], list) else [layers]
            word = "stage" if len(stages) == 1 else "stages"
            listed = ", ".join(f"{a} to {b - 1}" if b - a > 1 else str(a) for a, b in spans)
            return f"rank {rank}, {word} {' and '.join(map(str, stages))} (layers {listed})"
    return f"rank {rank}"


def _restarted(given: dict[str, Any], folder: Path, plan: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Return the losses of each restart that the plan asks for. Raises ValueError for others."""
    steps = {str(restart["first"]): restart["steps"] for restart in plan.get("restarts", ())}
    losses = {name: read_array(entry, folder) for name, entry in given.items()}
    shapes = {name: loss.shape for name, loss in losses.items()}
    if shapes != {name: (count,) for name, count in steps.items()}:
        raise ValueError(f"its restarts have steps {shapes}, the plan asks for {steps}")
    return {"loss": [losses[name].tolist() for name in steps]}


def _foreign(folder: Path, facts: dict[str, Any], plan: dict[str, Any]) -> dict[str, np.ndarray]:
    """Read the arrays that facts of a trainer in another language describe; write rank 0's weights.

    What follows from the plan is added to the facts.
    """
    given = facts.pop("arrays")
    # Ours alone: a program gives them among its arrays.
    facts.pop("restarts", None)
    if "restarts" in given:
        facts["restarts"] = _restarted(given["restarts"], folder, plan)
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
    """Return the facts and the series that a rank left; `plan` is what a foreign trainer was given.

    Raises OSError when a file is not there, and ValueError saying what is wrong with one.
    """
    facts = json.loads((folder / f"{rank_name(rank)}.json").read_text(encoding="utf-8"))
    missing = [name for name in _FACTS if name not in facts]
    if missing:
        raise ValueError(f"{rank_name(rank)}.json lacks {', '.join(missing)}")
    # Beside ranks of a program of its own there may be some of ours.
    series_file = folder / f"{rank_name(rank)}.npz"
    if plan is not None and not series_file.exists():
        if "arrays" not in facts:
            raise ValueError(f"{rank_name(rank)}.json lacks arrays")
        series = _foreign(folder, facts, plan)
    else:
        with np.load(series_file) as file:
            series = {name: file[name] for name in file.files}
    steps = len(series.get("loss", ()))
    # A program of its own need not know of pipelines.
    series.setdefault("bubble", np.zeros(steps))
    series.setdefault("evaluation", np.full(len(series.get("epoch_end", ())), np.nan))
    wanted = (*RANK_SERIES, "loss", "epoch_end", *(("score_sum",) if rank == 0 else ()))
    missing = [name for name in wanted if name not in series]
    if missing or not steps:
        raise ValueError(f"rank {rank} wrote no series {', '.join(missing) or 'of any step'}")
    for name in (*RANK_SERIES, "bubble"):
        if series[name].shape != (steps,):
            raise ValueError(f"rank {rank}: {name} has shape {series[name].shape}, not ({steps},)")
    if plan is not None and steps != plan["steps"]:
        raise ValueError(f"rank {rank} wrote {steps} steps, expected {plan['steps']}")
    return facts, series
