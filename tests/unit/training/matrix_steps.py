"""Trains all cases of the matrix in one start of so many ranks, each beside the float64 reference.

`mpiexec -n RANKS python matrix_steps.py FRAMEWORK STEP FIRST KIND`, in the framework's environment;
PYTHONPATH has this folder. Rank 0 prints as JSON how far each case is from the reference, relatively: losses of
each step, all weights after the last one, predictions, losses after going on from a state in the middle.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matrix_cases import Case, cases, chosen

from transect.domain.axes.train import ReferenceCell
from transect.domain.cell import Cell
from transect.payloads.reference_path import Path64, Problem, trajectory
from transect.payloads.train import batches_of_rank, train
from transect.training.averages import averaged, with_averages
from transect.training.departure import end_process
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layout import Layout
from transect.training.learning_rates import learning_rates
from transect.training.strategies import STRATEGIES, _progress, strategy_options
from transect.training.support import updates_whole
from transect.training.workloads import WORKLOADS, model_of

STEPS, MIDDLE = 4, 2


def problem_of(cell: Any, layout: Layout, *, averaged: bool) -> Problem:
    """Return the cell's training in float64, on drawn samples: as many as its steps take.

    Its batches are cut as the ranks cut them, whether that matters or not; weights are averaged where ranks can.
    """
    workload = WORKLOADS.get(cell.workload)
    model = model_of(workload)
    samples = STEPS * cell.batch
    generator = np.random.default_rng(5)
    x, y = generator.standard_normal((samples + 6, *model.sample)), generator.integers(0, 3, samples + 6)
    data = {
        "x_train": x[:samples],
        "y_train": y[:samples],
        "x_test": x[samples:],
        "y_test": y[samples:],
        "order": generator.permutation(samples)[None],
    }
    plan = ModelPlan(
        model=model,
        parameters=workload.defaults.model_copy(update={"batch": cell.batch, "ema": 0.7 if averaged else None}),
        weights=model.initial_weights(7),
        batch=cell.batch,
        precision="fp64",
        device="cpu",
        threads=1,
    )
    reference_cell = ReferenceCell(
        workload=cell.workload,
        framework="numpy",
        strategy="single",
        precision="fp64",
        batch=cell.batch,
        shards=layout.replicas,
        micro_batches=layout.micro_batches,
        reduce=cell.reduce,
    )
    return Problem(cell=reference_cell, plan=plan, data=data, folder=Path(), steps=STEPS)


def apart(found: Any, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest number; NaN where there is one."""
    difference = np.abs(np.asarray(found) - expected)
    return float(difference.max() / np.abs(expected).max())


def mean_loss(comm: Any, strategy: Any, losses: np.ndarray) -> np.ndarray:
    """Return the mean of the losses of those ranks that tell one."""
    every = comm.allgather(losses if strategy.tells_loss else None)
    return np.mean([values for values in every if values is not None], axis=0)


def compare(comm: Any, framework: str, case: Case) -> dict[str, float] | str:
    """Train as the worker does; return the deviations, or why the strategy does not take the case."""
    strategy = STRATEGIES.get(case.strategy)
    options = strategy_options(case.strategy, case.options, "here")
    axes: dict[str, Any] = {
        "stage": "train",
        "workload": case.workload,
        "framework": framework,
        "strategy": case.strategy,
        "precision": "fp64",
        "ranks_per_node": comm.size,
        "options": options,
        "reduce": case.reduce,
    }
    layout = strategy.layout(Cell.of(**axes, batch=comm.size))
    cell = Cell.of(**axes, batch=case.share * layout.replicas)
    reason = strategy.supports(cell) or layout.complaint(cell.batch)
    if reason is not None:
        return str(reason)
    problem = problem_of(cell, layout, averaged=updates_whole(strategy, cell))
    plan, model = problem.plan, problem.plan.model
    strategy.framework, strategy.operation = framework, cell.reduce
    place = strategy.join()
    rank_plan = replace(plan, batch=case.share)
    # Of parts of a model it is the first replica's that count, of others rank 0's.
    if place.rank and not strategy.sharded:
        rank_plan = replace(rank_plan, weights={name: array + 1 for name, array in plan.weights.items()})
    trainer = strategy.trainer(FRAMEWORKS.get(framework), rank_plan, cell)
    strategy.start(trainer)
    batches = batches_of_rank(cell, model, trainer, problem.data, problem.folder, layout, place.rank, {})
    rates = learning_rates(plan.parameters, "none", cell.batch, STEPS)
    expected = comm.bcast(trajectory(problem, keep=(MIDDLE,)) if comm.rank == 0 else None)
    series = train(model, plan.parameters, trainer, strategy, place, batches, rates)
    off = {"loss": apart(mean_loss(comm, strategy, series["loss"]), expected.loss)}
    assert (series["compute"] > 0).all() != bool(layout.workers and place.rank > 1)
    assert (series["bubble"] >= 0).all()
    assert not (series["compute"] + series["communication"] > series["step"]).any()
    if case.strategy == "torch-pipeline":
        # Torch does not tell how long a message is under way.
        assert np.isnan(series["under_way"]).all() and (series["bubble"] <= series["communication"]).all()
    if "all" in (case.options.get("result"), case.options.get("reduce")):
        trained = [weight.name for weight in model.weight_shapes() if weight.trained]
        bits = b"".join(trainer.weights()[name].tobytes() for name in trained)
        assert len(set(comm.allgather(bits))) == 1, "all ranks update alike"
    off |= _after(strategy, trainer, place, problem, expected)
    trainer.resume(expected.states[MIDDLE])
    steps = zip(batches.steps(MIDDLE, STEPS - MIDDLE), rates[MIDDLE:].tolist(), strict=True)
    losses = np.array([strategy.step(trainer, x, y, rate).loss for (x, y), rate in steps])
    off["resumed"] = apart(mean_loss(comm, strategy, losses), expected.loss[MIDDLE:])
    strategy.barrier()
    if hasattr(strategy, "_progress"):
        strategy._progress.close()
    return off


def _after(strategy: Any, trainer: Any, place: Any, problem: Problem, expected: Path64) -> dict[str, float]:
    if place.rank and not strategy.sharded:
        return {}
    model, rule = problem.plan.model, problem.plan.parameters
    weights = with_averages(model, trainer, rule, partial(strategy.weights, trainer))
    x = problem.data["x_test"]
    with averaged(trainer, rule):
        outputs = strategy.predict(trainer, x)
    if place.rank:
        return {}
    assert weights.keys() == expected.weights.keys(), list(weights)
    end = NumpyTrainer(problem.plan)
    end.load(expected.weights | {n.removeprefix("average/"): a for n, a in expected.weights.items() if "/" in n})
    return {
        "weights": max(apart(weights[name], array) for name, array in expected.weights.items()),
        "predict": apart(outputs, end.predict(x)),
    }


def meet_by_gloo(comm: Any) -> None:
    """Let torch's ranks meet once for all cases: its strategies are made for one training."""
    import torch.distributed as dist

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = comm.bcast(free.getsockname()[1])
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(comm.rank),
        "WORLD_SIZE": str(comm.size),
        "LOCAL_RANK": str(comm.rank),
    }
    dist.init_process_group("gloo")
    dist.init_process_group = lambda *given, **more: None


def main(framework: str, step: str, first: str, kind: str) -> None:
    from mpi4py import MPI

    comm, found = MPI.COMM_WORLD, []
    # Models so small would be under way as a whole: no layer would wait for its turn.
    _progress.WINDOW_BYTES = 1
    if kind == "gloo":
        meet_by_gloo(comm)
    for case in chosen(cases(comm.size, kind), int(step), int(first)):
        off = compare(comm, framework, case)
        found.append({"case": case, "off": off} if isinstance(off, dict) else {"case": case, "reason": off})
    if comm.rank == 0:
        print(json.dumps(found))
    comm.Barrier()
    MPI.Finalize()


if __name__ == "__main__":
    main(*sys.argv[1:5])
    # Gloo's threads were seen to abort where the interpreter takes them apart.
    end_process(0)
