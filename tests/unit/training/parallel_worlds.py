"""Several trainings on the same started ranks over gloo, and the same in numpy in one process."""

from __future__ import annotations

import pickle
import socket
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.cell import Cell
from transect.training.frameworks import ModelPlan, TrainingState
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import initial_weights
from transect.training.layout import Layout
from transect.training.strategies import STRATEGIES, strategy_options
from transect.training.workloads import Parameters
from warm import ended, warm

RATES = (0.05, 0.05, 0.1, 0.02, 0.05)
# The state before this step is what trainers are restarted from, for two steps.
MIDDLE = 2

# What one rank does, with no more than its environment has.
RANK = """
import json, pickle, sys, time
import numpy as np
from transect.training.departure import end_process
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
with open(sys.argv[1], "rb") as file:
    cases = pickle.load(file)
place, found = None, {}
for case in cases:
    strategy = type(STRATEGIES.get(case["cell"].strategy))()
    strategy.framework, strategy.operation = "torch", case["cell"].reduce
    place = place or strategy.join()
    print(case["name"], flush=True)
    framework, plan = FRAMEWORKS.get("torch"), case["plans"][place.rank]
    trainer = strategy.trainer(framework, plan, case["cell"])
    strategy.start(trainer)
    share = strategy.layout(case["cell"]).share(place.rank)
    def step(number):
        x, y = case["batches"][number]
        part = slice(share.number * len(y) // share.count, (share.number + 1) * len(y) // share.count)
        return strategy.step(trainer, *trainer.batch(x[part], y[part]), case["rates"][number])
    losses, parts = [], []
    for number in range(len(case["rates"])):
        begin = time.perf_counter()
        made = step(number)
        parts.append((*made[1:], time.perf_counter() - begin))
        losses.append(made.loss)
        if number == 0:
            strategy.predict(trainer, case["samples"])
    name = case["name"]
    found |= {f"{name}/loss": losses, f"{name}/parts": parts}
    found[f"{name}/outputs"] = strategy.predict(trainer, case["samples"])
    found |= {f"{name}/weight/{key}": array for key, array in strategy.weights(trainer).items()}
    trainer.resume(case["state"])
    found[f"{name}/restarted"] = [step(number).loss for number in case["restart"]]
    found[f"{name}/tells"] = strategy.tells_loss
    found[f"{name}/details"] = json.dumps(strategy.details())
np.savez(sys.argv[2], **found)
strategy.barrier()
strategy.leave()
end_process(0)
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A training of `layers`; numpy does it in the replicas and micro-batches of its layout."""

    name: str
    strategy: str
    layers: tuple[Any, ...]
    sample: tuple[int, ...]
    batch: int = 12
    precision: str = "fp64"
    reduce: str = "mean"
    options: dict[str, Any] = field(default_factory=dict)
    optimiser: str = "sgd"

    def cell(self, ranks: int) -> Any:
        """Return it as a cell of some workload."""
        return Cell.of(
            stage="train",
            workload="none",
            framework="torch",
            strategy=self.strategy,
            ranks_per_node=ranks,
            batch=self.batch,
            precision=self.precision,
            reduce=self.reduce,
            options=strategy_options(self.strategy, self.options, "here"),
        )

    def layout(self, ranks: int) -> Layout:
        """Return how the strategy divides the ranks."""
        return STRATEGIES.get(self.strategy).layout(self.cell(ranks))

    def plan(self, batch: int, precision: str, seed: int = 3) -> ModelPlan:
        """Return what a trainer is built of."""
        rule = Parameters(
            batch=self.batch,
            epochs=1,
            learning_rate=0.05,
            momentum=0.9,
            weight_decay=1e-3,
            optimiser=self.optimiser,
            quality_target=0.5,
        )
        return ModelPlan(
            model=LayeredModel(self.layers, self.sample),
            parameters=rule,
            weights=initial_weights(self.layers, seed),
            batch=batch,
            precision=precision,
            device="cpu",
            threads=1,
        )

    @cached_property
    def batches(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Global batches."""
        generator = np.random.default_rng(0)
        classes = LayeredModel(self.layers, self.sample).output[0]
        return [
            (generator.standard_normal((self.batch, *self.sample)), generator.integers(0, classes, self.batch))
            for _ in RATES
        ]

    def expected(self, layout: Layout) -> tuple[np.ndarray, NumpyTrainer, TrainingState]:
        """Train with numpy; return the loss of each step, the trainer, and its state in the middle.

        Running statistics are those of the first replica.
        """
        size = self.batch // layout.replicas
        trainers = [NumpyTrainer(self.plan(size, "fp64")) for _ in range(layout.replicas)]
        losses, state = [], None
        for number, ((x, y), rate) in enumerate(zip(self.batches, RATES, strict=True)):
            if number == MIDDLE:
                state = trainers[0].state()
            total, loss = np.zeros_like(trainers[0].flat_gradient), 0.0
            for replica, trainer in enumerate(trainers):
                for cut in layout.micro(size):
                    part = slice(replica * size + cut.start, replica * size + cut.stop)
                    weight = (cut.stop - cut.start) / size
                    loss += weight * trainer.forward_backward(x[part], y[part]) / layout.replicas
                    total += weight * trainer.flat_gradient
            if self.reduce == "mean":
                total /= layout.replicas
            losses.append(loss)
            for trainer in trainers:
                trainer.set_gradient(total)
                trainer.update(rate)
        assert state is not None
        return np.array(losses), trainers[0], state


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run_world(python: str, folder: Path, ranks: int, cases: list[Case]) -> list[Any]:
    """Start the ranks once and train all cases on them; return what each rank found."""
    told = []
    for case in cases:
        layout = case.layout(ranks)
        batch = case.batch // layout.replicas
        # Only rank 0 has the weights that all must train.
        plans = [case.plan(batch, case.precision, 3 + rank) for rank in range(ranks)]
        told.append(
            {
                "name": case.name,
                "cell": case.cell(ranks),
                "plans": plans,
                "rates": RATES,
                "batches": case.batches,
                "samples": case.batches[0][0],
                "state": case.expected(layout)[2],
                "restart": range(MIDDLE, MIDDLE + 2),
            }
        )
    return started(python, folder, ranks, RANK, told)


def started(python: str, folder: Path, ranks: int, code: str, cases: Any) -> list[Any]:
    """Start ranks that meet over gloo and run `code` on the cases' file; return the arrays that each wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases").write_bytes(pickle.dumps(cases))
    common = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    begun = [
        warm(python).start(
            "-c",
            code,
            folder / "cases",
            folder / f"{rank}.npz",
            merge=True,
            env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(ranks)
    ]
    done = ended(begun)
    assert [one.returncode for one in done] == [0] * ranks, "\n".join(one.stdout for one in done)
    return [np.load(folder / f"{rank}.npz") for rank in range(ranks)]
