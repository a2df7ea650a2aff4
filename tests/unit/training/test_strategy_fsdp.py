"""Fully sharded training on real ranks follows the path of one numpy rank in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parallel_worlds import started

from transect.domain.cell import Cell
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    initial_weights,
)
from transect.training.strategies import STRATEGIES
from transect.training.workloads import Parameters

BATCH, SAMPLE, RATES = 8, (1, 8, 8), (0.05, 0.05, 0.1, 0.02, 0.05)
PARAMETERS = Parameters(batch=BATCH, epochs=1, learning_rate=0.05, momentum=0.9, weight_decay=1e-3, quality_target=0.5)
# Five, seven and three outputs do not divide by two or four: some ranks hold nothing of them.
PLAIN = (
    Conv2d(1, 5, 3, padding=1),
    ReLU(),
    MaxPool2d(2),
    Residual((Conv2d(5, 6, 3, 1, 2), ReLU(), Conv2d(6, 6, 3, 1)), (Conv2d(5, 6, 1, stride=2),)),
    ReLU(),
    Flatten(),
    Linear(24, 7),
    ReLU(),
    Linear(7, 3),
)
NORMED = (
    Conv2d(1, 5, 3, padding=1, bias=False),
    BatchNorm2d(5),
    ReLU(),
    Residual((Conv2d(5, 5, 3, 1, bias=False), BatchNorm2d(5))),
    ReLU(),
    GlobalAveragePool(),
    Linear(5, 3),
)
# Name, layers, precision, operation, the smallest group: all in one, or every layer by itself.
CASES = (
    ("whole", PLAIN, "fp64", "mean", 10**9),
    ("by layer", PLAIN, "fp64", "mean", 1),
    ("summed", PLAIN, "fp64", "sum", 1),
    ("batch norm", NORMED, "fp64", "mean", 1),
    ("single precision", PLAIN, "fp32", "mean", 1),
    ("single precision summed", PLAIN, "fp32", "sum", 10**9),
    ("mixed precision", PLAIN, "amp-bf16", "mean", 1),
)
NAMES = [case[0] for case in CASES]
TOLERANCE = {"fp64": 1e-13, "fp32": 1e-6, "amp-bf16": 0.05}

# What one rank does, with no more than its environment has.
RANK = """
import pickle, sys, time
import numpy as np
import torch.distributed as dist
from transect.training.departure import end_process
from transect.training.frameworks import FRAMEWORKS
from transect.training.strategies import STRATEGIES
gathers, gather = [], dist.all_gather_single
def counted(*given, **named):
    gathers.append(named["group"])
    return gather(*given, **named)
dist.all_gather_single = counted
with open(sys.argv[1], "rb") as file:
    cases, rates, parts_of_batches, samples = pickle.load(file)
strategy = STRATEGIES.get("fsdp")
place = strategy.join()
found = {}
for name, plans, operation, smallest in cases:
    case = type(strategy)()
    case.operation, case.smallest_group = operation, smallest
    trainer = FRAMEWORKS.get("torch").trainer(plans[place.rank])
    case.start(trainer)
    found[f"{name}/held"] = sum(p.to_local().numel() for p in trainer.parameters)
    case.predict(trainer, samples)
    losses, parts = [], []
    for rate, (x, y) in zip(rates, parts_of_batches[place.rank], strict=True):
        gathers.clear()
        begin = time.perf_counter()
        made = case.step(trainer, *trainer.batch(x, y), rate)
        parts.append((*made[1:], time.perf_counter() - begin, len(gathers)))
        losses.append(made.loss)
        outputs = case.predict(trainer, samples)
        trainer.weights()
    found |= {f"{name}/loss": losses, f"{name}/parts": parts, f"{name}/outputs": outputs}
    found |= {f"{name}/weight/{key}": array for key, array in trainer.weights().items()}
np.savez(sys.argv[2], **found)
strategy.barrier()
strategy.leave()
end_process(0)
"""


def plan(layers: Any, precision: str, ranks: int, seed: int = 3) -> ModelPlan:
    return ModelPlan(
        model=LayeredModel(layers, SAMPLE),
        parameters=PARAMETERS,
        weights=initial_weights(layers, seed),
        batch=BATCH // ranks,
        precision=precision,
        device="cpu",
        threads=1,
    )


def batches(ranks: int, rank: int) -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(0)
    part = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    drawn = [(generator.standard_normal((BATCH, *SAMPLE)), generator.integers(0, 3, BATCH)) for _ in RATES]
    return [(x[part], y[part]) for x, y in drawn]


@pytest.fixture(scope="module", params=[1, 2, 4])
def trained(request, torch_python: str, tmp_path_factory) -> list[Any]:
    """What each rank of a world found, for all cases."""
    ranks, folder = request.param, tmp_path_factory.mktemp("ranks")
    # Only rank 0 has the weights that all must train.
    cases = [
        (name, [plan(layers, precision, ranks, seed=3 + rank) for rank in range(ranks)], *rest)
        for name, layers, precision, *rest in CASES
    ]
    parts = [batches(ranks, rank) for rank in range(ranks)]
    told = (cases, RATES, parts, batches(1, 0)[0][0])
    return started(torch_python, folder, ranks, RANK, told)


def expected(layers: Any, operation: str, ranks: int) -> tuple[list[NumpyTrainer], np.ndarray]:
    """Do the same with numpy in one process; return the trainers and the losses (ranks, steps)."""
    trainers = [NumpyTrainer(plan(layers, "fp64", ranks)) for _ in range(ranks)]
    losses = []
    for step, rate in enumerate(RATES):
        losses.append([one.forward_backward(*batches(ranks, r)[step]) for r, one in enumerate(trainers)])
        total = sum(one.gradient() for one in trainers)
        shared = total / ranks if operation == "mean" else total
        for one in trainers:
            one.set_gradient(shared)
            one.update(rate)
    return trainers, np.array(losses).T


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_path_is_that_of_whole_models(trained, case):
    name, layers, precision, operation, _ = case
    trainers, losses = expected(layers, operation, len(trained))
    tolerance = TOLERANCE[precision]
    for found, model, own in zip(trained, trainers, losses, strict=True):
        assert found[f"{name}/loss"] == pytest.approx(own, abs=tolerance)
        # Running statistics too, which are those of each rank.
        weights = model.weights()
        names = [key.split("/")[2] for key in found.files if key.startswith(f"{name}/weight/")]
        assert names == list(weights)
        for key, array in weights.items():
            assert found[f"{name}/weight/{key}"] == pytest.approx(array, abs=tolerance), key
        outputs = model.predict(batches(1, 0)[0][0])
        assert found[f"{name}/outputs"] == pytest.approx(outputs, abs=tolerance)


def test_the_mean_over_ranks_is_the_whole_batch(trained):
    [alone], losses = expected(PLAIN, "mean", 1)
    seen = np.mean([found["whole/loss"] for found in trained], axis=0)
    assert seen == pytest.approx(losses[0], abs=1e-13)
    for key, array in alone.weights().items():
        assert trained[0][f"whole/weight/{key}"] == pytest.approx(array, abs=1e-13)


def test_each_parameter_is_held_once(trained):
    whole = sum(array.size for array in initial_weights(PLAIN, 3).values())
    held = [int(found["by layer/held"]) for found in trained]
    assert sum(held) == whole
    assert max(held) < whole or len(trained) == 1


def test_the_parts_make_up_the_step(trained):
    for found in trained:
        for name in ("whole", "by layer"):
            compute, communication, under_way, _, step, _ = found[f"{name}/parts"].T
            assert (compute > 0).all()
            assert (compute + communication <= step).all()
            assert (under_way == communication).all()
            assert ((communication > 0) == (len(trained) > 1)).all()


def test_a_prediction_saves_the_next_step_no_gather(trained):
    for found in trained:
        gathers = found["whole/parts"][:, -1]
        assert gathers.tolist() == [float(len(trained) > 1)] * len(RATES)


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({"framework": "torch"}, None),
        ({"framework": "torch", "device": "cuda", "reduce": "sum"}, None),
        ({"framework": "numpy"}, "torch, not of numpy"),
        ({"framework": "torch", "device": "rocm"}, "not on rocm"),
    ],
)
def test_what_it_runs(axes, reason):
    axes = {"strategy": "fsdp", "batch": 64, "ranks_per_node": 2, **axes}
    cell = Cell.of(stage="train", workload="digits-cnn", **axes)
    said = STRATEGIES.get("fsdp").supports(cell)
    assert said is None if reason is None else reason in said
