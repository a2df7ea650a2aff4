"""Trains small models by the MPI strategies, on all ranks of one start, beside float64 on one process.

`mpiexec -n RANKS python message_steps.py FRAMEWORK`, in the framework's environment. Rank 0 prints as
JSON, for each case, how far losses, weights and restarted losses are from float64 and whether all ranks
that update ended with the same bits.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from part_steps import apart, make_plan

from transect.domain.cell import Cell
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, _progress, strategy_options

RATES = (0.05, 0.1, 0.02)
# Strategy, its options, and whether all ranks update.
CASES: list[tuple[str, dict[str, Any], bool]] = [
    ("mpi-bcast-reduce", {}, False),
    ("mpi-hierarchical", {}, False),
    ("mpi-hierarchical", {"group": 2, "chunk_bytes": 100, "upper": "chain"}, False),
    ("mpi-hierarchical", {"group": 2, "chunk_bytes": 100, "result": "all"}, True),
    ("mpi-hierarchical", {"group": 3, "upper": "chain", "result": "all"}, True),
    # Chunks larger than any memory: no more is shared than is sent.
    ("mpi-hierarchical", {"inner": "shared", "group": 2, "chunk_bytes": 10**15}, False),
    ("mpi-hierarchical", {"inner": "shared", "chunk_bytes": 1000, "result": "all"}, True),
    ("mpi-overlap-bcast", {}, False),
    ("mpi-overlap-bcast", {"progress": "thread", "bucket_bytes": 300}, False),
    ("mpi-overlap", {}, False),
    ("mpi-overlap", {"progress": "test", "wait": "spin"}, False),
    ("mpi-overlap", {"progress": "thread"}, False),
    ("mpi-overlap", {"progress": "thread", "reduce": "all"}, True),
    ("mpi-overlap", {"reduce": "all", "bucket_bytes": 10**9}, True),
]
RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "adamw": ("mlp", {"optimiser": "adamw", "weight_decay": 0.1}),
    "nesterov": ("net", {"optimiser": "nesterov", "momentum": 0.9, "weight_decay": 1e-3}),
}
KINDS = (("fp64", "mean", "nesterov"), ("fp64", "sum", "adamw"), ("fp32", "mean", "nesterov"))


class Float64:
    """One process with a trainer for each rank's share; weights and updates are the first one's."""

    def __init__(self, plan: ModelPlan, layout: Layout, operation: str) -> None:
        self._trainers = [NumpyTrainer(replace(plan, precision="fp64")) for _ in range(layout.replicas)]
        self._layout, self._operation = layout, operation

    def step(self, x: np.ndarray, y: np.ndarray, rate: float) -> float:
        first, count = self._trainers[0], len(self._trainers)
        losses, total = [], np.zeros_like(first.flat_gradient)
        for number, one in enumerate(self._trainers):
            one.flat_weights[...] = first.flat_weights
            mine = slice(number * len(y) // count, (number + 1) * len(y) // count)
            losses.append(one.forward_backward(x[mine], y[mine]))
            total += one.flat_gradient
        first.set_gradient(total / count if self._operation == "mean" else total)
        first.update(rate)
        return float(np.mean(losses))

    @property
    def first(self) -> NumpyTrainer:
        return self._trainers[0]


def compare(comm: Any, framework: str, precision: str, operation: str, case: Any, rule: Any) -> dict[str, float]:
    """Train both ways; then go on with both from the same state of float64."""
    name, options, _ = case
    strategy = STRATEGIES.get(name)
    cell = Cell.of(
        stage="train",
        workload="digits-cnn",
        framework=framework,
        strategy=name,
        batch=60,
        ranks_per_node=comm.size,
        options=strategy_options(name, options, "test"),
    )
    plan = make_plan(rule[0], precision, "cross-entropy", rule[1])
    strategy.framework, strategy.operation = framework, operation
    place = strategy.join()
    layout = strategy.layout(cell)
    trainer: Any = strategy.trainer(FRAMEWORKS.get(framework), plan, cell)
    if place.rank:
        # What rank 0 begins with is what counts.
        trainer.load({key: array + 1 for key, array in plan.weights.items()})
    strategy.start(trainer)
    expected = Float64(plan, layout, operation)
    generator, dtype = np.random.default_rng(0), np.float32 if precision == "fp32" else np.float64
    size, share = 2 * comm.size, layout.share(place.rank)
    mine = slice(share.number * size // share.count, (share.number + 1) * size // share.count)

    def both(rate: float) -> float:
        x = generator.standard_normal((size, *plan.model.sample))
        y = generator.integers(0, 3, size)
        given = x[mine].astype(dtype)
        parts = strategy.step(trainer, *trainer.batch(given, y[mine]), rate)
        assert parts.compute > 0 and parts.communication >= 0
        loss = comm.allreduce(parts.loss) / comm.size
        return abs(expected.step(x, y, rate) - loss)

    off = {"loss": max(both(rate) for rate in RATES)}
    # The others' are those of the last step's begin, where rank 0 alone updates.
    off["weights"] = apart(expected.first.weights(), trainer.weights())
    off["predict"] = 0.0
    x = generator.standard_normal((5, *plan.model.sample))
    if place.rank == 0:
        got = strategy.predict(trainer, x.astype(dtype))
        off["predict"] = float(np.abs(expected.first.predict(x) - got).max())
    trained = {w.name for w in plan.model.weight_shapes() if w.trained}
    bits = b"".join(a.tobytes() for n, a in sorted(trainer.weights().items()) if n in trained)
    off["same"] = float(len(set(comm.allgather(bits))) == 1)
    state = expected.first.state()
    both(0.1)
    expected.first.resume(state)
    trainer.resume(state)
    off["resumed"] = max(both(rate) for rate in RATES[:2])
    strategy.barrier()
    if hasattr(strategy, "_progress"):
        strategy._progress.close()
    return off


def main(framework: str) -> None:
    """Print what rank 0 saw."""
    from mpi4py import MPI

    comm, found = MPI.COMM_WORLD, []
    # Models so small would be under way as a whole: no layer would wait for its turn.
    _progress.WINDOW_BYTES = 1
    for case in CASES:
        for precision, operation, rule in KINDS:
            off = compare(comm, framework, precision, operation, case, RULES[rule])
            found.append({"case": case, "precision": precision, "off": off})
    if comm.rank == 0:
        print(json.dumps(found))
    comm.Barrier()
    MPI.Finalize()


if __name__ == "__main__":
    main(sys.argv[1])
