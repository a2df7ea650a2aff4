"""Trains small models by a strategy on this rank's part of each batch, beside numpy in float64 on all parts.

`transect launch ... -- python data_parallel_steps.py FRAMEWORK STRATEGY [CASE...]`, in the framework's environment. Each
rank prints as JSON how far it is from what numpy says of it. With `die` rank 1 is killed in its first step.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from trainer_checks import NumpyTrainer, apart, data, plan

from transect.domain.cell import Cell
from transect.training.accumulation import accumulating
from transect.training.averages import averaged
from transect.training.frameworks import FRAMEWORKS
from transect.training.memory._limit import status_bytes
from transect.training.strategies import STRATEGIES, strategy_options

EMA = 0.7
RATES = (0.05, 0.05, 0.1, 0.02, 0.02)


def compare(framework: str, name: str, strategy: Any, place: Any, case: str) -> dict[str, float]:
    """Train both ways; return the largest difference of each kind. A case's number is that of a rank's devices."""
    model, strategy.operation, *number = case.removesuffix(" accumulated").split()
    parts_of_batch = 2 if case.endswith("accumulated") else 1
    devices = int(number[0]) if number else 1
    options = strategy_options(name, {"devices": devices} if number else {}, case)
    cell = Cell.of(
        stage="train",
        workload="none",
        framework=framework,
        strategy=name,
        batch=6,
        ranks_per_node=place.world_size,
        options=options,
    )
    precision = "fp32" if name == "kvstore-dist-sync" else "fp64"
    # Each rank begins with weights of its own: those of rank 0 must win.
    given = replace(
        plan(model, precision=precision, seed=3 + place.rank, ema=EMA, accumulation=parts_of_batch),
        batch=6 // place.world_size,
    )
    if name.startswith("horovod") and framework == "torch":
        given = replace(given, memory_budget=1 << 30)
    trainer: Any = strategy.trainer(FRAMEWORKS.get(framework), given, cell)
    strategy.start(trainer)
    strategy.barrier()
    begun = status_bytes("VmData")[0]
    ranks = [
        accumulating(NumpyTrainer(plan(model, ema=EMA)), parts_of_batch) for _ in range(place.world_size * devices)
    ]
    size, first = 6 // len(ranks), place.rank * devices
    parts = [slice(r * size, (r + 1) * size) for r in range(len(ranks))]
    off = {"loss": 0.0}
    for number, rate in enumerate(RATES):
        x, y = data(model, number)
        losses = [peer.forward_backward(*peer.batch(x[part], y[part])) for peer, part in zip(ranks, parts, strict=True)]
        total = sum(peer.gradient() for peer in ranks) / (len(ranks) if strategy.operation == "mean" else 1)
        for peer in ranks:
            peer.set_gradient(total)
            peer.update(rate)
        mine = slice(place.rank * given.batch, (place.rank + 1) * given.batch)
        batch = trainer.batch(x[mine].astype(np.float32 if precision == "fp32" else np.float64), y[mine])
        done = strategy.step(trainer, *batch, rate)
        off["loss"] = max(off["loss"], abs(done.loss - float(np.mean(losses[first : first + devices]))))
        for each in (*ranks, trainer):
            each.average()
        # NaN where the library does not tell.
        assert not done.compute <= 0 and not done.communication < 0 and done.bubble == 0, done
        assert not done.under_way < done.communication, done
        assert (framework == "jax") == bool(np.isnan(done.compute)), done
    # Running statistics too, which are those of each rank.
    off["weights"] = apart(ranks[first].weights(), trainer.weights())
    if place.rank == 0 or strategy.sharded:
        with averaged(ranks[0], given.parameters), averaged(trainer, given.parameters):
            off["averages"] = apart(ranks[0].weights(), trainer.weights())
            off["predict"] = float(np.abs(ranks[0].predict(x) - strategy.predict(trainer, x)).max())
    # Horovod's own buffer of 128 MiB is there before a budget begins.
    off["grown"] = float(status_bytes("VmData")[0] - begun)
    return off


def main(framework: str, name: str, *cases: str) -> None:
    strategy = STRATEGIES.get(name)
    strategy.framework = framework
    place = strategy.join()
    if "die" in cases and place.rank == 1:
        os.kill(os.getpid(), 9)
    found = {"place": [place.rank, place.world_size, place.local_rank]}
    found |= {case: compare(framework, name, strategy, place, case) for case in cases if case != "die"}
    found["libraries"] = strategy.libraries()
    strategy.barrier()
    strategy.leave()
    # One write: without a buffer, print's own newline may come after another rank's line.
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
