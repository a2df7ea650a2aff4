"""One rank of a training cell: `python -m transect.training.worker --spec … --data … --out …`.

Writes `rank-RRR.npz` (times and losses per step) and `rank-RRR.json` (facts) into `--out`;
rank 0 also writes `weights.npz`. An exception is written as `rank-RRR.error.json`, so that the
runner can tell an out-of-memory error or a missing library from a crash.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.domain.files import write_atomic
from transect.training.frameworks import FRAMEWORKS, ModelPlan, Trainer
from transect.training.strategies import STRATEGIES, Place, Strategy
from transect.training.workloads import WORKLOADS, Parameters

__all__ = ["batch_indices", "error_facts", "load_start", "main", "train"]

_NANO = 1e-9


def load_start(folder: Path, repeat: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return what the data stage wrote: arrays with the repeat's batch order, initial weights."""
    with np.load(folder / "data.npz") as file:
        data = {name: file[name] for name in file.files}
    with np.load(folder / f"start-{repeat}.npz") as file:
        data["order"] = file["order"]
        weights = {name: file[name] for name in file.files if name != "order"}
    return data, weights


def batch_indices(order: np.ndarray, batch: int, place: Place) -> Iterator[list[np.ndarray]]:
    """Yield, per epoch, this rank's sample numbers of each step.

    `order` is (epochs, n). The global batch is cut in `world_size` equal parts in rank order,
    so that their union is the single-rank batch; the last partial batch is left out.
    """
    local = batch // place.world_size
    start = place.rank * local
    for epoch in order:
        steps = len(epoch) // batch
        yield [epoch[i * batch + start : i * batch + start + local] for i in range(steps)]


def _accuracy(trainer: Trainer, x: np.ndarray, y: np.ndarray) -> int:
    return int((trainer.predict(x).argmax(axis=1) == y).sum())


def train(
    trainer: Trainer,
    strategy: Strategy,
    place: Place,
    data: dict[str, np.ndarray],
    parameters: Parameters,
) -> dict[str, np.ndarray]:
    """Train; return per-step `input`, `compute`, `communication`, `step` seconds and `loss`,
    per-epoch `correct` (rank 0) and `epoch_end` seconds since the first step began.
    """
    times: list[tuple[int, int, int, int, int, float]] = []
    losses: list[float] = []
    correct: list[int] = []
    epoch_end: list[int] = []
    clock = time.perf_counter_ns
    x_train, y_train = data["x_train"], data["y_train"]
    strategy.barrier()
    begin = clock()
    for steps in batch_indices(data["order"], parameters.batch, place):
        for indices in steps:
            t0 = clock()
            x, y = trainer.batch(x_train[indices], y_train[indices])
            t1 = clock()
            loss = trainer.forward_backward(x, y)
            t2 = clock()
            strategy.reduce(trainer)
            t3 = clock()
            trainer.update()
            trainer.finish_step()
            t4 = clock()
            times.append((t0, t1, t2, t3, t4, strategy.hidden_communication()))
            losses.append(loss)
        if place.rank == 0:
            correct.append(_accuracy(trainer, data["x_test"], data["y_test"]))
        # Others wait here, not in the next step's communication.
        strategy.barrier()
        epoch_end.append(clock() - begin)
    stamps = np.array([row[:5] for row in times], dtype=np.int64)
    hidden = np.array([row[5] for row in times])
    parts = np.diff(stamps, axis=1) * _NANO
    return {
        "input": parts[:, 0],
        "compute": parts[:, 1] + parts[:, 3] - hidden,
        "communication": parts[:, 2] + hidden,
        "step": (stamps[:, 4] - stamps[:, 0]) * _NANO,
        "loss": np.array(losses),
        "correct": np.array(correct, dtype=np.int64),
        "epoch_end": np.array(epoch_end) * _NANO,
    }


def error_facts(error: BaseException) -> dict[str, str]:
    """Name the cause of an exception in the words of the record."""
    name, text = type(error).__name__, str(error)
    lower = text.lower()
    if (
        isinstance(error, MemoryError)
        or name == "OutOfMemoryError"
        or "can't allocate memory" in lower
    ):
        cause = "out-of-memory"
    elif isinstance(error, ImportError):
        cause = "missing-dependency"
    else:
        cause = "crash"
    return {"cause": cause, "message": f"{name}: {text}"}


def _peak_memory() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _run(spec: dict[str, Any], data_folder: Path, out: Path, facts: dict[str, Any]) -> None:
    cell = Cell.model_validate(spec["cell"])
    assert cell.workload and cell.framework and cell.strategy
    workload = WORKLOADS.get(cell.workload)
    parameters = Parameters.model_validate(spec["parameters"])
    framework, strategy = FRAMEWORKS.get(cell.framework), STRATEGIES.get(cell.strategy)
    place = strategy.join()
    facts["rank"] = place.rank
    if place.world_size != cell.ranks:
        raise RuntimeError(f"started on {place.world_size} ranks, the cell has {cell.ranks}")
    touched = time.perf_counter()
    data, weights = load_start(data_folder, cell.repeat)
    plan = ModelPlan(
        layers=workload.layers,
        parameters=parameters,
        weights=weights,
        precision=cell.precision,
        device=cell.device,
        threads=cell.threads,
    )
    trainer = framework.trainer(plan)
    strategy.start(trainer)
    ready = time.perf_counter()
    # Wall clock once, because the launcher's start is on another process's clock.
    facts["startup_s"] = time.time() - float(os.environ["TRANSECT_STARTED_AT"])
    series = train(trainer, strategy, place, data, parameters)
    facts.update(
        data_to_start_s=ready - touched,
        peak_memory_bytes=_peak_memory(),
        test_total=len(data["y_test"]),
        gradient_bytes=trainer.gradient().nbytes,
        parameters=sum(array.size for array in weights.values()),
        libraries=framework.libraries() | strategy.libraries() | {"python": sys.version.split()[0]},
    )
    strategy.leave()
    np.savez(out / f"rank-{place.rank:03d}.npz", **series)
    if place.rank == 0:
        np.savez(out / "weights.npz", **trainer.weights())
    write_atomic(out / f"rank-{place.rank:03d}.json", json.dumps(facts))


def main(arguments: list[str] | None = None) -> int:
    """Run one rank; 0 when it trained to the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data stage")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    facts: dict[str, Any] = {"rank": int(os.environ.get("RANK", "0")), "pid": os.getpid()}
    try:
        _run(json.loads(given.spec.read_text()), given.data, given.out, facts)
    except Exception as error:
        traceback.print_exc()
        sys.stderr.flush()
        name = f"rank-{facts['rank']:03d}.error.json"
        write_atomic(given.out / name, json.dumps(facts | error_facts(error)))
        # Not sys.exit: under MPI the other ranks wait inside a collective, and finalising would
        # wait for them. Dying with a code makes the launcher end them.
        os._exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
