"""Averages of weights: by hand, scored and exported in the weights' place, held to the reference's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rank_runs import Training, arrays

from transect.training.averages import averaged, with_averages
from transect.training.costs import step_costs
from transect.training.frameworks import ModelPlan
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.inputs import load_data
from transect.training.layered import LayeredModel
from transect.training.layers import Linear
from transect.training.layout import Layout
from transect.training.workloads import WORKLOADS, Parameters, model_of
from warm import warm

EMA = Parameters(batch=1, epochs=1, learning_rate=1.0, quality_target=1, ema=0.5)
PLAN = ModelPlan(
    model=LayeredModel((Linear(2, 1),), (2,)),
    parameters=EMA,
    weights={"0.weight": np.zeros((1, 2)), "0.bias": np.zeros(1)},
    batch=1,
    precision="fp64",
    device="cpu",
    threads=1,
)


def stepped(steps: int) -> NumpyTrainer:
    """Return a trainer whose weights have gone from 0 by -1 in each step."""
    trainer = NumpyTrainer(PLAN)
    for _ in range(steps):
        trainer.set_gradient(np.ones(3))
        trainer.update(1.0)
        trainer.average()
    return trainer


@pytest.mark.fast
def test_the_average_by_hand():
    # Weights -1, -2, -3; averages -1, -1.5, -2.25.
    trainer = stepped(3)
    with averaged(trainer, EMA):
        assert trainer.weights()["0.bias"] == -2.25
        assert trainer.predict(np.ones((1, 2))) == pytest.approx(3 * -2.25)
    assert trainer.weights()["0.bias"] == -3.0
    found = with_averages(PLAN.model, trainer, EMA, trainer.weights)
    assert set(found) == {"0.weight", "0.bias", "average/0.weight", "average/0.bias"}
    assert (found["0.bias"], found["average/0.bias"]) == (-3.0, -2.25)


@pytest.mark.fast
def test_without_averages_weights_stay_where_they_are():
    trainer, rule = NumpyTrainer(replace(PLAN, parameters=EMA.model_copy(update={"ema": None}))), EMA
    with averaged(trainer, rule.model_copy(update={"ema": None})):
        assert trainer.weights().keys() == PLAN.weights.keys()


@pytest.mark.fast
@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1])
def test_a_share_is_between_zero_and_one(wrong):
    with pytest.raises(ValueError, match="ema"):
        Parameters(batch=1, epochs=1, learning_rate=1.0, quality_target=1, ema=wrong)


@pytest.mark.fast
def test_an_average_is_work():
    plain = EMA.model_copy(update={"ema": None})
    less, more = (step_costs(PLAN.model, rule, 1, Layout(1), "fp32") for rule in (plain, EMA))
    assert more["flops_per_step"] - less["flops_per_step"] == 3 * 3
    assert more["bytes_per_step"] - less["bytes_per_step"] == 2 * 4 * 3


PLUGINS = """
from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks._numpy_trainer import NumpyTrainer
from transect.training.frameworks.numpy_ import NumpyFramework

class Never(NumpyTrainer):
    def average(self):
        self.flat_average = self.flat_weights.copy()

class Wrong(NumpyTrainer):
    def average(self):
        before = self.flat_average.copy()
        super().average()
        if before.size:
            self.flat_average += 0.01 * (before - self.flat_average)

for kind in (Never, Wrong):
    FRAMEWORKS.register(f"own-{kind.__name__}")(
        type(kind.__name__, (NumpyFramework,), {"trainer": lambda self, plan, kind=kind: kind(plan)})
    )
"""


@pytest.fixture(scope="module")
def training(base_python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Training, Path]:
    rule = {"batch": 16, "epochs": 6, "learning_rate": 0.1, "momentum": 0.9, "ema": 0.9}
    folder = tmp_path_factory.mktemp("averages") / "training"
    made = Training(python=base_python, folder=folder, rule=rule, plugins=PLUGINS)
    made.prepare()
    return made, made.reference()


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_is_scored_and_exported_is_the_average(training, ranks):
    made, reference = training
    strategy = "single" if ranks == 1 else "mpi-allreduce"
    out, _ = made.train(ranks, strategy=strategy, reference=reference)
    exported, checked = arrays(out / "weights.npz"), arrays(out / "checked.npz")
    assert set(checked) == {*exported, *(f"average/{name}" for name in exported)}
    moved = 0.0
    for name, array in exported.items():
        # The reference ends with the training here: both are of the last step.
        assert (array == checked[f"average/{name}"]).all()
        moved = max(moved, float(np.abs(array - checked[name]).max()))
    assert moved > 1e-3
    workload = WORKLOADS.get(made.workload)
    rule = Parameters.model_validate(made.rule)
    end = NumpyTrainer(replace(PLAN, model=model_of(workload), parameters=rule, weights=exported, precision="fp32"))
    data = load_data(made.folder / "data", 0, np.float32)
    score = end.computation.outputs(data["x_test"]).argmax(1) == data["y_test"]
    assert arrays(out / "rank-000.npz")["score_sum"][-1] == score.sum()
    found = made.merge(out, reference)
    assert (found["status"], found["message"]) == ("ok", "")
    assert found["metrics"]["weights_equality_ratio"] < 1


BASE = """
import sys
from pathlib import Path
import numpy as np
from transect.domain.axes.retrain import StepCell
from transect.payloads.step_base import Bases
from transect.training.workloads import WORKLOADS, Parameters, model_of

workload, rule, data, out = sys.argv[1:]
parameters = Parameters.model_validate_json(rule)
cell = StepCell(workload=workload, optimiser="sgd", base_epochs=parameters.epochs)
model = model_of(WORKLOADS.get(workload))
bases = Bases(cell=cell, model=model, parameters=parameters, data=Path(data), weights=None)
np.savez(out, **bases.weights_of(0))
"""


@pytest.mark.env
def test_a_retraining_goes_on_from_the_average(training, torch_python, tmp_path):
    made, reference = training
    rule = Parameters.model_validate(made.rule).model_dump_json()
    run = warm(torch_python).run("-c", BASE, made.workload, rule, str(made.folder / "data"), str(tmp_path / "base.npz"))
    assert run.returncode == 0, run.stderr
    base, trained = arrays(tmp_path / "base.npz"), arrays(made.train(reference=reference)[0] / "weights.npz")
    for name, array in trained.items():
        np.testing.assert_allclose(base[name], array, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mistake", ["Never", "Wrong"])
def test_a_wrong_average_leaves_the_reference(training, mistake):
    made, reference = training
    out, _ = made.train(framework=f"own-{mistake}", reference=reference)
    found = made.merge(out, reference)
    assert found["status"] == "failed" and "the weights deviate" in found["message"]
