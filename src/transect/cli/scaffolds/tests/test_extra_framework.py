"""The framework extra-framework beside the project's own in numpy.

Run it with pytest, by a Python that has transect. An environment that is missing is built first.
"""

from pathlib import Path

import numpy as np

from transect.cli.check_plugin import know_plugins
from transect.cli.plugin_checks import answers
from transect.training.frameworks import FRAMEWORKS, ModelPlan
from transect.training.workloads import WORKLOADS

know_plugins(None, Path(__file__).resolve().parents[1])

MODEL = WORKLOADS.get("iris-mlp-ce")


def trained(framework):
    """Return losses and weights of 20 steps in float64; every framework sees the same batches."""
    plan = ModelPlan(
        model=MODEL.model,
        parameters=MODEL.defaults,
        weights=MODEL.model.initial_weights(1),
        batch=16,
        precision="fp64",
        device="cpu",
        threads=1,
    )
    trainer, losses = FRAMEWORKS.get(framework).trainer(plan), []
    generator = np.random.default_rng(1)
    for _ in range(20):
        x, y = trainer.batch(generator.normal(size=(16, 4)), generator.integers(3, size=16))
        losses.append(trainer.forward_backward(x, y))
        trainer.update(MODEL.defaults.learning_rate)
    return losses, trainer.weights()


def test_it_answers_as_its_kind_must():
    assert [check for check in answers("framework", "extra-framework") if not check.holds] == []


def test_its_steps_are_those_of_numpy():
    (losses, weights), (expected_losses, expected_weights) = trained("extra-framework"), trained("numpy")
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-9)
    assert weights.keys() == expected_weights.keys()
    for name, array in weights.items():
        np.testing.assert_allclose(array, expected_weights[name], rtol=1e-9, atol=1e-12)
