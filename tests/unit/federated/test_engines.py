"""Engines of federated simulation, held to a plain training in float64; what they cannot do they say."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from federations import extended

from transect.domain.axes.federate import FederateCell
from transect.domain.errors import BadInput
from transect.federated.engines import ENGINES, Task, Turn, _pieces, loop, stacked
from transect.federated.flat import arrays_of, flat_of, trained_part
from transect.training.frameworks import ModelPlan, PartTrainer
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.layered import LayeredModel
from transect.training.layers import (
    BatchNorm2d,
    Branches,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
)
from transect.training.workloads import WORKLOADS, Parameters, model_of
from warm import warm

STEPS, BATCH, CLIENTS = 3, 5, 7
# By what is special: sample, layers, hyper-parameters.
CASES = {
    "momentum": (
        (4,),
        (Linear(4, 9), Sigmoid(), LayerNorm(9), Linear(9, 3)),
        {"momentum": 0.9, "weight_decay": 0.01, "label_smoothing": 0.1},
    ),
    "one output": ((4,), (Linear(4, 1),), {"loss": "binary-cross-entropy"}),
    "groups, stride": (
        (2, 7, 6),
        (Conv2d(2, 4, 3, padding=1, stride=2, groups=2), ReLU(), MaxPool2d(2, 1, 1), Flatten(), Linear(80, 3)),
        {"optimiser": "adam", "clip_norm": 0.1, "weight_decay": 0.01},
    ),
    "statistics": (
        (2, 7, 7),
        (
            Conv2d(2, 4, 3, stride=2, bias=False),
            BatchNorm2d(4),
            # A bias before a batch norm would have rounding for its gradient, which Adam makes a step of.
            Residual((Conv2d(4, 6, 3, padding=1, bias=False), BatchNorm2d(6), ReLU()), (Conv2d(4, 6, 1),)),
            Residual((ReLU(), Conv2d(6, 6, 3, padding=1))),
            GlobalAveragePool(),
            Linear(6, 3),
        ),
        {"optimiser": "adamw", "weight_decay": 0.1, "decay": "matrices"},
    ),
    "branches": (
        (3, 6, 5),
        (
            Branches(((), (MaxPool2d(3, 1, 1), Conv2d(3, 4, 1)), (Conv2d(3, 6, 3, padding=1, groups=3), ReLU()))),
            Conv2d(13, 3, 2),
            Flatten(),
            Linear(60, 3),
        ),
        {"optimiser": "rmsprop", "momentum": 0.5, "loss": "mse", "learning_rate": 1e-3},
    ),
    "wide frame": (
        (5, 4, 4),
        (Conv2d(5, 5, 2, padding=2, groups=5, stride=3), Sigmoid(), MaxPool2d(2, 2, 1), Flatten(), Linear(20, 3)),
        {"optimiser": "adagrad", "loss": "binary-cross-entropy", "clip_norm": 100.0},
    ),
    "look ahead": ((4,), (Linear(4, 3),), {"optimiser": "nesterov", "momentum": 0.8, "loss": "huber"}),
}


def task_of(case: str, engine: str, precision: str = "fp64", **more: object) -> Task:
    sample, layers, settings = CASES[case]
    model, generator = LayeredModel(layers, sample), np.random.default_rng(3)
    cell = FederateCell(
        workload="digits-cnn",
        aggregation="fedavg",
        partition="iid",
        engine=engine,
        clients=CLIENTS,
        cohort=CLIENTS,
        rounds=1,
        local_steps=STEPS,
        batch=BATCH,
        precision=precision,
    )
    return Task(
        cell=cell,
        model=model,
        parameters=Parameters.model_validate(
            {"batch": BATCH, "epochs": 1, "learning_rate": 0.01, "quality_target": 1, **settings, **more}
        ),
        weights=model.initial_weights(1),
        x=generator.standard_normal((40, *sample)).astype(np.float32 if precision == "fp32" else np.float64),
        y=generator.integers(0, model.output[0], 40),
    )


def turns_of(task: Task, clients: int = CLIENTS) -> list[Turn]:
    generator, start = np.random.default_rng(4), flat_of(task.model, task.weights)
    return [
        Turn(
            client=number,
            number=number,
            # Running variances stay positive.
            given=(start + 0.1 * generator.random(start.size)).astype(task.x.dtype),
            rows=generator.integers(0, len(task.x), (STEPS, BATCH)),
            seeds=np.arange(STEPS),
        )
        for number in range(clients)
    ]


def computed(task: Task, turns: list[Turn]) -> tuple[np.ndarray, np.ndarray]:
    with ENGINES.get(task.cell.engine).session(task) as session:
        found = list(session.turns(turns))
    return np.concatenate([piece.weights for piece in found]), np.concatenate([piece.losses for piece in found])


def expected(task: Task, turns: list[Turn]) -> tuple[np.ndarray, np.ndarray]:
    """Train each client by a new trainer in float64."""
    weights, losses = [], []
    for turn in turns:
        plan = ModelPlan(
            model=task.model,
            parameters=task.parameters,
            weights=arrays_of(task.model, turn.given.astype(np.float64)),
            batch=BATCH,
            precision="fp64",
            device="cpu",
            threads=1,
        )
        trainer, total = NumpyTrainer(plan), 0.0
        for rows in turn.rows:
            total += trainer.forward_backward(*trainer.batch(task.x[rows].astype(np.float64), task.y[rows]))
            if turn.anchor is not None:
                pull = turn.mu * (flat_of(task.model, trainer.weights()) - turn.anchor) + turn.correction
                trainer.flat_gradient += pull[trained_part(task.model)]
            trainer.update(task.parameters.learning_rate)
        weights.append(flat_of(task.model, trainer.weights()))
        losses.append(total / STEPS)
    return np.array(weights), np.array(losses)


@pytest.mark.parametrize("precision, near", [("fp64", 1e-12), ("fp32", 2e-4)])
@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("case", CASES)
def test_clients_follow_the_plain_training(case, engine, precision, near):
    task = task_of(case, engine, precision)
    turns = turns_of(task)
    weights, losses = computed(task, turns)
    assert weights.dtype == task.x.dtype
    followed, mean = expected(task, turns)
    np.testing.assert_allclose(weights, followed, rtol=0, atol=near)
    np.testing.assert_allclose(losses, mean, rtol=0, atol=near)
    # They went somewhere, each by itself.
    moved = np.abs(followed - [turn.given for turn in turns]).max(axis=1)
    assert (moved > 1e-3).all() and len(np.unique(losses)) == CLIENTS


@pytest.mark.parametrize("engine", ["loop", "stacked"])
@pytest.mark.parametrize("case", CASES)
def test_neighbours_and_their_order_change_no_bit(case, engine, monkeypatch):
    task = task_of(case, engine, "fp32")
    turns = turns_of(task, 11)
    weights, losses = computed(task, turns)
    for most, piece_bytes in ((1, 1), (3, 2**25), (4, 5 * weights[0].nbytes), (11, 7 * weights[0].nbytes)):
        monkeypatch.setattr(stacked, "_MOST_CLIENTS", most)
        monkeypatch.setattr(_pieces, "_PIECE_BYTES", piece_bytes)
        order = np.random.default_rng(most).permutation(len(turns))
        again, lost = computed(task, [turns[place] for place in order])
        np.testing.assert_array_equal(again, weights[order])
        np.testing.assert_array_equal(lost, losses[order])


def test_a_session_begins_each_client_anew():
    task = task_of("groups, stride", "stacked")
    turns = turns_of(task)
    with ENGINES.get("stacked").session(task) as session:
        first, again = (np.concatenate([piece.weights for piece in session.turns(turns)]) for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_turns_are_taken_as_they_are_computed(engine, monkeypatch):
    task = task_of("look ahead", engine)
    monkeypatch.setattr(_pieces, "_PIECE_BYTES", 2 * 15 * 8)
    taken = []
    with ENGINES.get(engine).session(task) as session:
        for number, turned in enumerate(session.turns(taken.append(turn) or turn for turn in turns_of(task))):
            assert len(turned.weights) == len(turned.losses) == min(2, CLIENTS - 2 * number)
            assert len(taken) == min(2 * (number + 1), CLIENTS)


@pytest.mark.parametrize(
    "engine, axes, workload, more, reason",
    [
        ("stacked", {}, "tickets-transformer", {}, "it stacks transect's own layers, not "),
        ("stacked", {}, "digits-cnn", {"optimiser": "lamb"}, "the optimiser lamb looks at each weight as a whole"),
        (
            "stacked",
            {"precision": "bf16"},
            "digits-cnn",
            {},
            "numpy's arrays train in fp32 or fp64 on cpu, not in bf16",
        ),
        ("stacked", {"precision": "fp64"}, "digits-cnn", {"optimiser": "adamw"}, None),
        ("stacked", {}, "digits-resnet50", {}, None),
        ("loop", {"framework": "go"}, "digits-cnn", {}, "go trains in a program of its own, which has no way to begin"),
        ("loop", {"framework": "torch", "precision": "fp16"}, "digits-cnn", {}, "torch trains in fp32"),
        (
            "loop",
            {"framework": "jax"},
            "digits-cnn",
            {"optimiser": "function"},
            "jax cells cannot update by an optimiser",
        ),
        ("loop", {"framework": "torch"}, "digits-cnn", {}, None),
        ("loop", {}, "tickets-transformer", {"optimiser": "lamb"}, None),
    ],
)
def test_what_cannot_be_computed_is_said(engine, axes, workload, more, reason):
    cell = task_of("momentum", engine).cell.model_copy(update={"workload": workload, **axes})
    chosen, asked = WORKLOADS.get(workload), ENGINES.get(engine)
    parameters = chosen.defaults.model_copy(update=more)
    told = asked.supports(cell) or asked.builds(cell, model_of(chosen), parameters)
    assert told is None if reason is None else told.startswith(reason)


def test_a_layer_that_is_not_stacked_is_named(monkeypatch):
    monkeypatch.setattr(stacked, "KINDS", (Linear, Flatten))
    task = task_of("groups, stride", "stacked")
    told = ENGINES.get("stacked").builds(task.cell, task.model, task.parameters)
    assert told == "of transect's layers it does not stack Conv2d, MaxPool2d, ReLU"


def test_a_trainer_that_cannot_begin_anew_is_refused(monkeypatch):
    monkeypatch.setattr(loop, "ResumableTrainer", PartTrainer)
    with pytest.raises(BadInput, match="NumpyTrainer of numpy cannot go on from a given state"):
        computed(task_of("momentum", "loop"), [])


TORCH = """
import pickle, sys
import numpy as np
from transect.federated.engines import ENGINES

for case, task, turns in pickle.load(open(sys.argv[1], "rb")):
    with ENGINES.get("loop").session(task) as session:
        found = list(session.turns(turns))
    np.savez(f"{sys.argv[2]}/{case}.npz", weights=found[0].weights, losses=found[0].losses)
"""


@pytest.mark.env
def test_clients_of_torch_follow_the_plain_training(torch_python, tmp_path):
    cases = []
    for case in CASES:
        task = task_of(case, "loop")
        task = replace(task, cell=task.cell.model_copy(update={"framework": "torch"}))
        cases += [(case, task, turns_of(task)), (f"{case}, extended", task, extended(turns_of(task)))]
    (tmp_path / "cases").write_bytes(pickle.dumps(cases))
    run = warm(torch_python).run("-c", TORCH, str(tmp_path / "cases"), str(tmp_path))
    assert run.returncode == 0, run.stderr
    for case, task, turns in cases:
        found, (weights, losses) = np.load(tmp_path / f"{case}.npz"), expected(task, turns)
        np.testing.assert_allclose(found["weights"], weights, rtol=0, atol=1e-12, err_msg=case)
        np.testing.assert_allclose(found["losses"], losses, rtol=0, atol=1e-12, err_msg=case)
