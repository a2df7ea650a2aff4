"""One rank of a training cell.

Of a cell with a reference the trainer is restarted from that one's states after its run; what a memory cell has
decided, a `planned` memory follows.

Writes `rank-RRR.npz` (times and losses per step) and `rank-RRR.json` (facts) into the cell's folder;
rank 0 also writes `weights.npz` and `checked.npz`. Only then do the ranks part. An exception is written as `rank-RRR.error.json`, so that the
runner can tell an out-of-memory error or a missing library from a crash.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from transect.domain.axes.train import MEMORY_PLAN, ReferenceCell, TrainCell
from transect.domain.errors import FAULTS, BadInput, WrongResult, error_facts
from transect.domain.files import write_atomic
from transect.domain.precisions import find_precision
from transect.measure.turns import Turns
from transect.measure.usage import Usage, resident_bytes
from transect.payloads.train_restarts import restart
from transect.training.accumulation import accumulating
from transect.training.averages import averaged, with_averages
from transect.training.datasets import DATASETS, StoredDataset
from transect.training.departure import end_process
from transect.training.frameworks import FRAMEWORKS, ModelPlan, Trainer
from transect.training.inputs import (
    Batches,
    DealtBatches,
    FileBatches,
    NoBatches,
    StoredBatches,
    SyntheticBatches,
    load_data,
    load_weights,
)
from transect.training.layout import Layout, Share
from transect.training.learning_rates import learning_rates
from transect.training.models import Model
from transect.training.rank_files import rank_name, write_arrays, write_facts, write_place
from transect.training.restarts import RESTARTS
from transect.training.strategies import STRATEGIES, Place, Strategy
from transect.training.support import reason_to_skip
from transect.training.workloads import WORKLOADS, Parameters, model_of

# Test samples that are predicted at once, and numbers in them.
EVALUATION_BATCH = 512
_EVALUATION_NUMBERS = 2**22


def score_test(model: Model, predict: Callable[[np.ndarray], np.ndarray], batches: Batches) -> float:
    """Return the sum of the test samples' scores; they are taken in parts, as there may be many."""
    x, y = batches.x_test, batches.y_test
    total = 0.0
    size = min(EVALUATION_BATCH, max(1, _EVALUATION_NUMBERS // prod(x.shape[1:])))
    for start in range(0, len(y), size):
        part = np.arange(start, min(start + size, len(y)))
        total += model.score_sum(predict(x[part]), y[part])
    return total


def train(
    model: Model,
    rule: Parameters,
    trainer: Trainer,
    strategy: Strategy,
    place: Place,
    batches: Batches,
    rates: np.ndarray,
    checkpoint: Callable[[int], None] | None = None,
    wait: Callable[[], None] | None = None,
) -> dict[str, np.ndarray]:
    """Train; return per-step `input`, `compute`, `communication`, `under_way`, `bubble`, `step` seconds and
    `loss`, per-epoch `score_sum` (rank 0), `evaluation` seconds and `epoch_end` seconds since the first step began.

    `rule` says whether weights are averaged, `rates` holds the learning rate of each step. `checkpoint(n)` is called after n steps, then `wait`; neither is
    counted. Rank 0's test of the model is `evaluation` and nothing else: it is not training.
    """
    times: list[tuple[float, float, float, float, float, float]] = []
    losses: list[float] = []
    scores: list[float] = []
    epoch_end: list[float] = []
    evaluation: list[float] = []
    clock = time.perf_counter
    predicts = place.rank == 0 or strategy.sharded
    number, paused = 0, 0.0
    # Python's own floats: one of numpy's would turn float32 arithmetic into float64.
    rate_of = rates.tolist()
    strategy.barrier()
    begin = clock()
    for epoch in batches:
        t0 = clock()
        for x, y in epoch:
            t1 = clock()
            loss, compute, communication, under_way, bubble = strategy.step(trainer, x, y, rate_of[number])
            if rule.ema is not None:
                updated = clock()
                trainer.average()
                trainer.finish_step()
                compute += clock() - updated
            t2 = clock()
            times.append((t1 - t0, compute, communication, under_way, bubble, t2 - t0))
            losses.append(loss)
            number += 1
            if checkpoint is not None:
                checkpoint(number)
            if wait is not None:
                wait()
            t0 = clock()
            paused += t0 - t2
        t0 = clock()
        if predicts:
            with averaged(trainer, rule):
                score = score_test(model, partial(strategy.predict, trainer), batches)
            if place.rank == 0:
                scores.append(score)
        evaluation.append(clock() - t0)
        paused += evaluation[-1]
        # Others wait here, not in the next step's communication.
        strategy.end_epoch()
        epoch_end.append(clock() - begin - paused)
    strategy.finish(trainer)
    names = ("input", "compute", "communication", "under_way", "bubble", "step")
    return dict(zip(names, np.array(times).reshape(-1, 6).T, strict=True)) | {
        "loss": np.array(losses),
        "score_sum": np.array(scores),
        "evaluation": np.array(evaluation),
        "epoch_end": np.array(epoch_end),
    }


def _peak_memory(trainer: Trainer) -> int:
    """Return the most bytes that the process held; where a trainer counts anew in each step it knows the rest."""
    import resource

    return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, trainer.peak_before())


def make_batches(
    cell: TrainCell | ReferenceCell,
    model: Model,
    trainer: Trainer,
    data: dict[str, Any],
    folder: Path,
    share: Share | None,
    options: dict[str, Any],
) -> Batches:
    """Return the batches of the cell's `input`; without a share, steps without any. `options` are the dataset's.

    Raises BadInput when not one batch is there.
    """
    epochs, samples = data["order"].shape
    if samples < cell.batch:
        raise BadInput(f"a global batch of {cell.batch} exceeds the {samples} training samples")
    dtype = np.dtype(find_precision(cell.precision).array)
    if share is None:
        return NoBatches(data, cell.batch, model, tested=cell.input != "synthetic")
    match cell.input:
        case "synthetic":
            return SyntheticBatches(
                trainer,
                model,
                share,
                batch=cell.batch,
                epochs=epochs,
                steps=samples // cell.batch,
                seed=cell.repeat,
                dtype=dtype,
            )
        case "files":
            dataset = DATASETS.get(WORKLOADS.get(cell.workload).dataset)
            reader = dataset.reader(folder, options, cell.repeat, dtype, cell.threads)
            drawn = not isinstance(dataset, StoredDataset)
            return FileBatches(trainer, data, cell.batch, share, reader, drawn=drawn)
    return StoredBatches(trainer, data, cell.batch, share)


def batches_of_rank(
    cell: TrainCell,
    model: Model,
    trainer: Trainer,
    data: dict[str, Any],
    folder: Path,
    layout: Layout,
    rank: int,
    options: dict[str, Any],
) -> Batches:
    """Return those of `make_batches` that a rank computes."""
    several = [make_batches(cell, model, trainer, data, folder, share, options) for share in layout.shares(rank)]
    return DealtBatches(layout, rank, several) if layout.workers else several[0]


def _run(spec: dict[str, Any], folders: dict[str, Path], out: Path, facts: dict[str, Any], turns: Turns) -> Strategy:
    """Train and write everything; return the strategy, whose ranks have not parted yet."""
    data_folder = folders["data"]
    states = folders["reference"] / RESTARTS if "reference" in folders else None
    memory_plan = folders["memory"] / MEMORY_PLAN if "memory" in folders else None
    cell = TrainCell.of(**spec["cell"])
    model = model_of(WORKLOADS.get(cell.workload), data_folder)
    parameters = Parameters.model_validate(spec["parameters"])
    framework, strategy = FRAMEWORKS.get(cell.framework), STRATEGIES.get(cell.strategy)
    reason = reason_to_skip(cell, parameters)
    if reason is not None:
        raise BadInput(reason)
    strategy.framework, strategy.operation = cell.framework, cell.reduce
    place = strategy.join()
    facts["rank"] = place.rank
    layout = strategy.layout(cell)
    if place.world_size != cell.ranks:
        why = ": its launcher may belong to another MPI" if place.world_size == 1 else ""
        raise WrongResult(f"started as a world of {place.world_size}, the cell has {cell.ranks} ranks{why}")
    if layout.ranks != cell.ranks:
        raise ValueError(f"the cell has {cell.ranks} ranks, and {cell.strategy} lays out {layout.ranks}")
    weights = load_weights(data_folder, cell.repeat)
    plan = ModelPlan(
        model=model,
        parameters=parameters,
        weights=weights,
        batch=cell.batch // layout.replicas,
        precision=cell.precision,
        device=cell.device,
        threads=cell.threads,
        memory=cell.memory,
        memory_budget=cell.memory_budget,
        memory_plan=json.loads(memory_plan.read_text()) if memory_plan else None,
    )
    trainer = accumulating(strategy.trainer(framework, plan, cell), parameters.accumulation)
    facts["tells_loss"] = strategy.tells_loss
    # As in MLPerf, the clock of time to quality begins before data is touched, and after libraries
    # are loaded and the model is made: some strategies load the framework when they join.
    touched = time.perf_counter()
    dtype = np.dtype(find_precision(cell.precision).array)
    data = load_data(data_folder, cell.repeat, dtype)
    strategy.start(trainer)
    write_place(out, place.rank, strategy.details())
    batches = batches_of_rank(cell, model, trainer, data, data_folder, layout, place.rank, parameters.dataset_options)
    ready = time.perf_counter()
    # Wall clock once, because the launcher's start is on another process's clock.
    facts["startup_s"] = time.time() - float(os.environ["TRANSECT_STARTED_AT"])
    facts["memory_at_rest_bytes"] = resident_bytes()
    print(f"rank {place.rank} of {place.world_size} begins to train", flush=True)
    steps = batches.epochs * batches.steps_per_epoch
    rates = learning_rates(parameters, cell.learning_rate_rule, cell.batch, steps)
    compared = parameters.reference_steps
    checked = steps if compared is None else min(compared, steps)
    kept: dict[str, np.ndarray] = {}

    def keep(number: int) -> None:
        if number == checked and (place.rank == 0 or strategy.sharded):
            kept.update(with_averages(model, trainer, parameters, partial(strategy.weights, trainer)))

    def wait() -> None:
        if turns.step():
            # A peer may need this rank's help to receive the last messages, and none begins before the others.
            strategy.barrier()
            watch.pause()
            turns.wait()
            watch.resume()
            strategy.barrier()

    if turns.taken:
        strategy.barrier()
        turns.begin()
    watch = Usage(cell.device, place.local_rank)
    try:
        series = train(model, parameters, trainer, strategy, place, batches, rates, keep, wait if turns.taken else None)
        turns.end()
        usage = watch.stop()
        with averaged(trainer, parameters):
            whole = strategy.weights(trainer) if place.rank == 0 or strategy.sharded else {}
        peak = _peak_memory(trainer)
        # All that was measured lies on disk before anything below may abort.
        write_arrays(out / f"{rank_name(place.rank)}.npz", series | strategy.series())
        if place.rank == 0:
            write_arrays(out / "weights.npz", whole)
            write_arrays(out / "checked.npz", kept)
        facts["restarts"] = restart(states, plan, trainer, strategy, batches, rates)
    finally:
        batches.close()
    trained = model.costs(parameters).parameters
    facts.update(
        host=socket.gethostname(),
        data_to_start_s=ready - touched,
        peak_memory_bytes=peak,
        test_total=len(batches.y_test),
        gradient_bytes=trained * dtype.itemsize,
        parameters=trained,
        steps_per_epoch=batches.steps_per_epoch,
        usage=usage,
        memory=trainer.memory(),
        strategy=strategy.details(),
        libraries=framework.libraries() | strategy.libraries() | {"python": sys.version.split()[0]},
    )
    write_facts(out, place.rank, facts)
    return strategy


def _depart(strategy: Strategy) -> None:
    """Part from the other ranks; the work is done, so a fault here is printed but costs no result."""
    try:
        # Nobody's peer may vanish while it still communicates.
        strategy.barrier()
        strategy.leave()
    except FAULTS:
        print("the rank's work is done and written; parting from the others failed:", flush=True)
        traceback.print_exc()


def run_rank(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> NoReturn:
    """Run one rank, and end its process: with 0 when it trained to the end."""
    facts: dict[str, Any] = {"rank": int(os.environ.get("RANK", "0")), "pid": os.getpid()}
    try:
        # Whoever is told to take turns says that it is there before it does anything that may take long.
        strategy = _run(spec, folders, out, facts, Turns())
    except FAULTS as error:
        at = time.time()
        traceback.print_exc()
        name = f"{rank_name(facts['rank'])}.error.json"
        write_atomic(out / name, json.dumps(facts | error_facts(error) | {"at": at}))
        # Not sys.exit: under MPI the other ranks wait inside a collective, and finalising would
        # wait for them. Dying with a code makes the launcher end them.
        end_process(1)
    _depart(strategy)
    end_process(0)
