"""One rank of bench_overlap.py: `mpiexec -n RANKS python overlap_ranks.py JSON`.

Every contender trains the same network from the same weights; they take a step each by turns, and so do
computing alone (no messages) and the messages alone (nothing computed). Rank 0 prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.layered import LayeredModel
from transect.training.layers import Layer, Linear, ReLU, initial_weights
from transect.training.strategies import STRATEGIES, strategy_options
from transect.training.workloads import Parameters

CLASSES = 10


def make_plan(told: dict[str, Any]) -> ModelPlan:
    """Return `layers` equal linear layers of `width`, with a rectifier after each, and a last one."""
    width = told["width"]
    layers: list[Layer] = []
    for _ in range(told["layers"]):
        layers += [Linear(width, width), ReLU()]
    layers.append(Linear(width, CLASSES))
    rule = Parameters(
        batch=told["batch"] * told["ranks"],
        epochs=1,
        learning_rate=0.01,
        momentum=0.9,
        quality_target=0.5,
        loss="cross-entropy",
    )
    return ModelPlan(
        model=LayeredModel(tuple(layers), (width,)),
        parameters=rule,
        batch=told["batch"],
        weights=initial_weights(tuple(layers), 1),
        precision="fp32",
        device="cpu",
        threads=1,
    )


def alone(plan: ModelPlan, told: dict[str, Any], batch: tuple[np.ndarray, np.ndarray]) -> Callable[[], Any]:
    """Return a step without messages: what a rank of SC-OBR computes."""
    from transect.training.strategies._layerwise import LayerwiseTrainer, weighty_parts

    parts = weighty_parts(plan.model, 0, 4)
    trainer = LayerwiseTrainer(FRAMEWORKS.get(told["framework"]), plan, parts)  # type: ignore[arg-type]
    x, y = trainer.batch(*batch)

    def step() -> None:
        trainer.forward_backward(x, y)
        trainer.update(0.01)

    return step


def messages(comm: Any, plan: ModelPlan) -> Callable[[], Any]:
    """Return a step's messages alone: every layer's weights from rank 0, its gradient to it."""
    from mpi4py import MPI

    sizes = [plan.weights[f"{i}.weight"].size + plan.weights[f"{i}.bias"].size for i in range(0, len(plan.layers), 2)]
    buffers = [np.zeros(size, np.float32) for size in sizes]

    def step() -> None:
        for buffer in buffers:
            comm.Bcast(buffer, root=0)
        for buffer in reversed(buffers):
            sides = (MPI.IN_PLACE, buffer) if comm.rank == 0 else (buffer, None)
            comm.Reduce(*sides, op=MPI.SUM, root=0)

    return step


def contender(
    comm: Any,
    plan: ModelPlan,
    told: dict[str, Any],
    name: str,
    options: dict[str, Any],
    batch: tuple[np.ndarray, np.ndarray],
) -> tuple[Any, Any, Callable[[], Any]]:
    """Return strategy, trainer and step."""
    strategy = STRATEGIES.get(name)
    cell = Cell.of(
        stage="train",
        workload="digits-mlp",
        framework=told["framework"],
        strategy=name,
        batch=told["batch"] * comm.size,
        ranks_per_node=comm.size,
        options=strategy_options(name, options, "bench"),
    )
    strategy.framework = told["framework"]
    strategy.join()
    trainer = strategy.trainer(FRAMEWORKS.get(told["framework"]), plan, cell)
    strategy.start(trainer)
    x, y = trainer.batch(*batch)
    return strategy, trainer, lambda: strategy.step(trainer, x, y, 0.01)


def main(told: dict[str, Any]) -> None:
    """Take the steps; hold all contenders' weights to one another."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    told["ranks"] = comm.size
    plan = make_plan(told)
    generator = np.random.default_rng(comm.rank)
    batch = (
        generator.standard_normal((told["batch"], told["width"])).astype(np.float32),
        generator.integers(0, CLASSES, told["batch"]),
    )
    runs = {"compute": alone(plan, told, batch), "communication": messages(comm, plan)}
    made = {}
    for label, (name, options) in told["contenders"].items():
        made[label] = contender(comm, plan, told, name, options, batch)
        runs[label] = made[label][2]
    times: dict[str, list[float]] = {label: [] for label in runs}
    waited: dict[str, list[float]] = {label: [] for label in made}
    for turn in range(told["steps"] + 2):
        for label, run in runs.items():
            comm.Barrier()
            begin = time.perf_counter()
            parts = run()
            seconds = comm.allreduce(time.perf_counter() - begin, op=MPI.MAX)
            mine = comm.allreduce(parts.communication if label in made else 0.0, op=MPI.MAX)
            # The first turns map memory and open connections.
            if turn > 1:
                times[label].append(seconds)
                if label in made:
                    waited[label].append(mine)
    apart = 0.0
    first = next(iter(made.values()))[1].weights()
    for _, trainer, _ in made.values():
        own = trainer.weights()
        apart = max(apart, *(float(np.abs(first[name] - own[name]).max()) for name in first))
    if comm.rank == 0:
        sent = sum(array.nbytes // 2 for array in plan.weights.values())
        print(json.dumps({"times": times, "waited": waited, "apart": apart, "bytes": sent}), flush=True)
    comm.Barrier()
    for strategy, _, _ in made.values():
        if hasattr(strategy, "_progress"):
            strategy._progress.close()
    comm.Barrier()
    MPI.Finalize()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
