"""A training whose loss explodes has diverged, finite or not, and claims nothing."""

from __future__ import annotations

import numpy as np
import pytest
from rank_runs import Training

from transect.training.divergence import divergence


def noisy(*levels: float, steps: int = 40, seed: int = 0) -> np.ndarray:
    """Losses about each level in turn, off by a factor of up to two from step to step."""
    generator = np.random.default_rng(seed)
    return np.concatenate([v * 2 ** generator.uniform(-1, 1, steps) for v in levels])


@pytest.mark.parametrize(
    ("loss", "word"),
    [
        (noisy(1.0, 0.5, 0.1), ""),
        *((noisy(1.0, 1.0, seed=seed), "") for seed in range(20)),
        # It learns nothing, and is no worse for it.
        (noisy(1.0, 1.5, 1.5), ""),
        # Out and back again; a spike at the very end.
        (noisy(1.0, 9e3, 0.5), ""),
        (np.append(noisy(1.0, 0.5), 1e6), ""),
        (noisy(1.0, 80.0, 9517.0), "the loss ends at"),
        (noisy(1.0, 9517.0), "times the"),
        (np.array([1.0, 50.0, 3000.0, 9000.0, 9517.0]), "the loss ends at 6000"),
        (np.array([1.0, 0.9, np.nan, 1.0]), "the loss is nan at step 2"),
        (np.array([1.0, np.inf]), "the loss is inf at step 1"),
        # One step, and losses that have no multiples.
        (np.array([1e9]), ""),
        (np.array([0.0, 1.0, 1.0]), ""),
        (np.array([-1.0, 80.0, 80.0]), ""),
    ],
)
def test_what_has_diverged(loss, word):
    reason = divergence(loss)
    assert bool(reason) == bool(word) and word in reason


@pytest.mark.parametrize("rate", [30.0, 0.02])
def test_a_cell_that_follows_a_diverging_reference_has_diverged(base_python, tmp_path, rate):
    rule = {"learning_rate": rate, "momentum": 0.9, "epochs": 20, "quality_target": 0.3}
    training = Training(python=base_python, folder=tmp_path, rule=rule)
    training.prepare()
    out, _ = training.train()
    result = training.merge(out, training.reference())
    # It reached the target on the way: that is kept, and `failed` keeps it out of every claim.
    assert result["details"]["quality"]["reached"]
    assert result["metrics"]["equality_ratio"] <= 1
    if rate < 1:
        assert (result["status"], result["cause"], result["message"]) == ("ok", None, "")
        return
    assert (result["status"], result["cause"]) == ("failed", "diverged")
    assert "times the" in result["message"]
    assert "diverges as well" in result["message"]
