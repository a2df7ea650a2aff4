"""Mistakes that a trainer may make are caught, or the check says that it cannot tell.

docs/equality.md shows the table that this makes: `TRANSECT_WRITE_DOCS=1 pytest tests/unit/training/test_equality.py`
writes it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_runs import Training

from checkouts import ROOT
from transect.domain.cell import Cell
from transect.payloads.reference import even_points
from transect.payloads.reference_path import Problem, trajectory
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.inputs import StoredBatches, SyntheticBatches
from transect.training.layout import Share
from transect.training.sharpness import blind_from
from transect.training.workloads import WORKLOADS, model_of

PAGE = ROOT / "docs" / "equality.md"
START, END = "<!-- generated table: start -->", "<!-- generated table: end -->"

# Each begins with step 80 of 140, unless its name says otherwise.
PLUGINS = """
import os

from transect.training.frameworks import FRAMEWORKS, Trainer, TrainingState
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework

BEGIN = 80


class Counting(NumpyTrainer):
    done = 0

    def update(self, learning_rate):
        self.mistaken(learning_rate) if self.done >= BEGIN else super().update(learning_rate)
        self.done += 1

    def right(self, learning_rate):
        super().update(learning_rate)


class Frozen(Counting):
    def mistaken(self, learning_rate):
        pass


class FrozenByUpdates(NumpyTrainer):
    def update(self, learning_rate):
        if self._updates < BEGIN:
            super().update(learning_rate)


class FrozenForAWhile(Counting):
    def mistaken(self, learning_rate):
        if self.done >= BEGIN + 20:
            self.right(learning_rate)


class WrongRate(NumpyTrainer):
    def update(self, learning_rate):
        super().update(1.01 * learning_rate)


class WrongRateLate(Counting):
    def mistaken(self, learning_rate):
        self.right(1.01 * learning_rate)


class DroppedRank(Counting):
    mistaken = NumpyTrainer.update

    def gradient(self):
        if self.done >= BEGIN and os.environ.get("OMPI_COMM_WORLD_RANK") == "1":
            self.flat_gradient[...] = 0
        return self.flat_gradient


class LostMomentum(Counting):
    def mistaken(self, learning_rate):
        if self.done == BEGIN:
            self._states[0][...] = 0
        self.right(learning_rate)


class LostAtResume(NumpyTrainer):
    def resume(self, state):
        super().resume(state)
        self._states[0][...] = 0


def passed_on(name):
    return lambda self, *given: getattr(self.own, name)(*given)


NoResume = type("NoResume", (Trainer,), {name: passed_on(name) for name in Trainer.__abstractmethods__} | {
    "__init__": lambda self, plan: setattr(self, "own", NumpyTrainer(plan))})


for trainer in (NumpyTrainer, Frozen, FrozenByUpdates, FrozenForAWhile, WrongRate, WrongRateLate,
                DroppedRank, LostMomentum, LostAtResume, NoResume):
    class Own(NumpyFramework):
        kind = trainer

        def trainer(self, plan):
            return self.kind(plan)

    FRAMEWORKS.register(f"own-{trainer.__name__}")(Own)
"""
# Its trainer, its ranks, the step from which it shows in the run itself, and what the page calls it.
MISTAKES = [
    ("NumpyTrainer", 1, None, "none"),
    ("Frozen", 1, 80, "the update does nothing from step 80 on, by a count of the trainer's own"),
    ("FrozenByUpdates", 1, 80, "the same, by the number of updates that the optimiser counts"),
    ("FrozenForAWhile", 1, 80, "the update does nothing in steps 80 to 99"),
    ("WrongRate", 1, 0, "the rate is 1 % too large"),
    ("WrongRateLate", 1, 80, "the rate is 1 % too large from step 80 on"),
    ("DroppedRank", 2, 80, "the gradient of one of two ranks is zero from step 80 on"),
    ("LostMomentum", 1, 80, "the momentum is lost once, before step 80"),
    ("LostAtResume", 1, None, "the momentum is lost wherever training is resumed"),
]
# By the learning rate: with 2 the loss jumps to millions within a dozen steps.
REGIMES = {"smooth": 0.02, "unstable": 2.0}


@pytest.fixture(scope="module")
def regimes(base_python, tmp_path_factory) -> dict[str, tuple[Training, Path]]:
    made = {}
    for name, rate in REGIMES.items():
        rule = {"batch": 16, "epochs": 20, "learning_rate": rate, "momentum": 0.9}
        training = Training(
            python=base_python, folder=tmp_path_factory.mktemp(name) / "training", rule=rule, plugins=PLUGINS
        )
        training.prepare()
        made[name] = training, training.reference()
    return made


def judged(training: Training, reference: Path, trainer: str, ranks: int = 1) -> dict[str, Any]:
    strategy = "single" if ranks == 1 else "mpi-allreduce"
    out, _ = training.train(ranks=ranks, framework=f"own-{trainer}", strategy=strategy, reference=reference)
    return training.merge(out, reference)


def outcome(result: dict[str, Any], begin: int | None) -> str:
    """Say in words what became of a mistake that shows in the run from step `begin` on."""
    message, blind = result["message"], result["details"]["not_checkable_from"]
    late = begin is not None and blind is not None and blind <= begin
    # Where the run is blind its weights are chance: on another machine they may pass.
    if result["status"] == "failed" and not (late and "the weights deviate" in message):
        for words, verdict in (
            ("restarted from", "caught in a restart"),
            ("the loss leaves", "caught in the run"),
            ("the weights deviate", "caught by the weights"),
        ):
            if words in message:
                return verdict
        return message
    if begin is None:
        return "right" if blind is None else "right, the run not checkable to its end"
    return "called not checkable by then" if late else "missed"


@pytest.fixture(scope="module")
def outcomes(regimes) -> dict[str, list[str]]:
    return {
        words: [outcome(judged(*regimes[name], trainer, ranks), begin) for name in REGIMES]
        for trainer, ranks, begin, words in MISTAKES
    }


def test_every_mistake_is_caught_or_called_not_checkable(outcomes):
    right = outcomes.pop("none")
    assert right == ["right", "right, the run not checkable to its end"]
    for words, found in outcomes.items():
        assert all(text.startswith("caught") or "not checkable by then" in text for text in found), words
    outcomes["none"] = right


def test_what_goes_on_to_the_end_is_caught_however_unstable(outcomes):
    for _, _, _, words in MISTAKES:
        if "once" not in words and "to 99" not in words and words != "none":
            assert all(text.startswith("caught") for text in outcomes[words]), words


def test_the_page_has_this_table(outcomes):
    lines = [["mistake", *(f"{name} (rate {rate:g})" for name, rate in REGIMES.items())]]
    lines += [["---"] * 3, *([words, *outcomes[words]] for _, _, _, words in MISTAKES)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    page = PAGE.read_text(encoding="utf-8")
    before, _, tail = page.partition(START)
    shown, _, after = tail.partition(END)
    if os.environ.get("TRANSECT_WRITE_DOCS"):
        PAGE.write_text(f"{before}{START}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    else:
        assert shown.strip() == table, "set TRANSECT_WRITE_DOCS=1 to write it"


def test_a_trainer_that_cannot_be_handed_a_state_says_so(regimes):
    for name in REGIMES:
        result = judged(*regimes[name], "NoResume")
        assert result["status"] == "ok" and result["details"]["restarts"] == []
        assert "NoResume" in result["details"]["restarts_not_checkable"]
        assert "restart_ratio" not in result["metrics"]


def test_the_record_says_until_where_it_is_sharp(regimes):
    smooth, unstable = (judged(*regimes[name], "NumpyTrainer") for name in REGIMES)
    assert smooth["details"]["not_checkable_from"] is None
    assert smooth["metrics"]["sharp_steps"] == 140
    blind = unstable["details"]["not_checkable_from"]
    assert 4 < blind == unstable["metrics"]["sharp_steps"] < 80
    for result in (smooth, unstable):
        points = result["details"]["restarts"]
        assert [point["step"] for point in points][-3:] == [45, 91, 136]
        assert all(point["sharp"] and point["steps"] == 4 for point in points)
        assert result["metrics"]["restart_ratio"] == max(point["ratio"] for point in points) < 1
    # Where it goes blind as well.
    assert blind in [point["step"] for point in unstable["details"]["restarts"]]


@pytest.mark.parametrize(
    ("loss", "tolerance", "step"),
    [
        ([1.0, 0.8, 0.5, 0.4], [0.01] * 4, None),
        # A spike's tolerance stays when its loss has gone.
        ([1.0, 0.8, 50.0, 0.4], [0.01, 0.01, 4.0, 4.0], 3),
        # All that training has done is 0.1.
        ([2.3, 2.25, 2.2, 2.2], [0.02] * 4, 0),
        ([2.3, 2.25, 2.2, 2.2], [0.001, 0.002, 0.02, 0.02], 2),
        ([1.0], [0.01], None),
        ([1.0, 0.5], [np.inf, np.inf], 0),
        ([1.0, 0.5, 0.0], [1e-6] * 3, 2),
    ],
)
def test_from_where_a_tolerance_tells_nothing(loss, tolerance, step):
    assert blind_from(np.array(loss), np.array(tolerance)) == step


def iris_plan(**sizes: np.ndarray) -> ModelPlan:
    workload = WORKLOADS.get("iris-mlp-ce")
    weights = model_of(workload).initial_weights(1) | sizes
    return ModelPlan(
        model=model_of(workload),
        parameters=workload.defaults,
        weights=weights,
        batch=8,
        precision="fp64",
        device="cpu",
        threads=1,
    )


@pytest.mark.parametrize(
    ("steps", "large", "points"),
    [
        (1, False, [0]),
        (7, False, [0]),
        (8, False, [4]),
        (20, False, [8, 16]),
        (420, False, [139, 277, 416]),
        (420, True, [416]),
    ],
)
def test_restarts_are_few_and_even_and_the_last_is_at_the_end(tmp_path, steps, large, points):
    # 2^24 weights with their momentum are as many bytes as one point may have beside no other.
    sizes = {"0.weight": np.broadcast_to(0.0, (2**24,))} if large else {}
    cell = Cell.of(stage="reference", workload="iris-mlp-ce", framework="numpy", strategy="single", batch=16)
    problem = Problem(cell=cell, plan=iris_plan(**sizes), data={}, folder=tmp_path, steps=steps)
    assert even_points(problem) == points


def test_a_path_that_ends_early_has_the_rates_of_the_whole_training(tmp_path):
    generator = np.random.default_rng(4)
    cosine = iris_plan().parameters.model_copy(update={"schedule": {"name": "cosine", "end": 0.0, "warmup_steps": 1}})
    plan = replace(iris_plan(), parameters=cosine)
    data = {
        "x_train": generator.standard_normal((30, 4)),
        "y_train": generator.integers(0, 3, 30),
        "x_test": generator.standard_normal((6, 4)),
        "y_test": generator.integers(0, 3, 6),
        "order": np.stack([generator.permutation(30) for _ in range(3)]),
    }
    cell = Cell.of(stage="reference", workload="iris-mlp-ce", framework="numpy", strategy="single", batch=8)
    whole, early = (
        trajectory(Problem(cell=cell, plan=plan, data=data, folder=tmp_path, steps=steps)) for steps in (9, 5)
    )
    assert np.array_equal(early.loss, whole.loss[:5])
    constant = replace(plan, parameters=iris_plan().parameters)
    assert not np.array_equal(
        whole.loss, trajectory(Problem(cell=cell, plan=constant, data=data, folder=tmp_path, steps=9)).loss
    )


def test_a_gradient_of_a_unit_that_no_row_reaches_is_not_rounded(tmp_path):
    generator = np.random.default_rng(4)
    bias = iris_plan().weights["0.bias"].copy()
    bias[0] = -1e3
    adam = iris_plan().parameters.model_copy(update={"optimiser": "adam"})
    plan = replace(iris_plan(**{"0.bias": bias}), parameters=adam)
    data = {
        "x_train": generator.standard_normal((24, 4)),
        "y_train": generator.integers(0, 3, 24),
        "x_test": None,
        "y_test": None,
        "order": np.arange(24)[None],
    }
    cell = Cell.of(stage="reference", workload="iris-mlp-ce", framework="numpy", strategy="single", batch=8)
    # Rounding so large that Adam would make a whole learning rate of it in any direction.
    rounding = np.full(NumpyTrainer(plan).flat_weights.size, 1e6)
    problem = Problem(cell=cell, plan=plan, data=data, folder=tmp_path, steps=2, rounding=rounding)
    exact, erring = (trajectory(problem, unit, unit, seed=1).weights["0.bias"] for unit in (0.0, 1e-9))
    assert erring[0] == pytest.approx(exact[0], rel=1e-7)
    assert np.abs(erring - exact)[1:].max() > adam.learning_rate / 10


def test_batches_of_some_steps_are_those_of_the_epochs():
    generator = np.random.default_rng(2)
    trainer = NumpyTrainer(iris_plan())
    data = {
        "x_train": generator.standard_normal((30, 4)),
        "y_train": generator.integers(0, 3, 30),
        "x_test": None,
        "y_test": None,
        "order": np.stack([generator.permutation(30) for _ in range(3)]),
    }
    share = Share(1, 2)
    for batches in (
        StoredBatches(trainer, data, 8, share),
        SyntheticBatches(trainer, model_of(WORKLOADS.get("iris-mlp-ce")), share, batch=8, epochs=3, steps=3, seed=5),
    ):
        every = [batch for epoch in batches for batch in epoch]
        assert len(every) == 9
        # Across the end of an epoch.
        for (x, y), (own_x, own_y) in zip(every[2:6], batches.steps(2, 4), strict=True):
            assert np.array_equal(x, own_x) and np.array_equal(y, own_y)
