"""Effects of factors on a score: made data whose effects are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from transect.analysis.factors import Run, effect, effects, interaction, spread_of

LEVELS = {
    "optimiser": ("sgd", "adamw"),
    "rate": ("old", "new", "schedule"),
    "runtime": ("torch", "step", "ort"),
}
BASE = {"optimiser": "sgd", "rate": "old", "runtime": "torch"}
SEEDS = range(6)


def _made(
    rule: Callable[[dict[str, str]], float],
    noise: float = 0.0,
    seed: int = 0,
    lacking: Callable[[dict[str, str], int], bool] = lambda levels, seed: False,
) -> list[Run]:
    """Every combination, with a rule's score, a seed's own luck, and noise of each run."""
    generator = np.random.default_rng(seed)
    luck = generator.normal(0, 0.2, len(SEEDS))
    runs = []
    for combination in product(*LEVELS.values()):
        levels = dict(zip(LEVELS, combination, strict=True))
        for one in SEEDS:
            score = 0.5 + rule(levels) + luck[one] + noise * generator.normal()
            if not lacking(levels, one):
                runs.append(Run(levels=levels, seed=one, score=float(score)))
    return runs


def _additive(levels: dict[str, str]) -> float:
    return 0.1 * (levels["optimiser"] == "adamw") + 0.2 * (levels["rate"] == "new")


def test_effects_that_add_up_are_found_whatever_a_seeds_luck() -> None:
    runs = _made(_additive)
    found = {(one.factor, one.after): one for one in effects(runs, BASE)}
    assert found.keys() == {
        ("optimiser", "adamw"), ("rate", "new"), ("rate", "schedule"),
        ("runtime", "step"), ("runtime", "ort"),
    }  # fmt: skip
    truth = {("optimiser", "adamw"): 0.1, ("rate", "new"): 0.2}
    for key, one in found.items():
        assert one.mean == pytest.approx(truth.get(key, 0.0), abs=1e-12)
        assert one.seeds == len(SEEDS)
    assert found["optimiser", "adamw"].blocks == 9
    assert found["rate", "new"].blocks == 6


def test_an_effect_of_nothing_is_not_shown() -> None:
    one = effect(_made(_additive, noise=0.05), "runtime", "torch", "ort")
    assert one is not None and one.low is not None and one.high is not None
    assert one.low < 0 < one.high
    assert not one.shown


def test_an_effect_beyond_the_noise_is_shown() -> None:
    one = effect(_made(_additive, noise=0.05), "rate", "old", "new")
    assert one is not None
    assert one.shown
    assert one.mean == pytest.approx(0.2, abs=0.05)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for seed in range(300):
        one = effect(_made(_additive, noise=0.1, seed=seed), "optimiser", "sgd", "adamw")
        assert one is not None and one.low is not None and one.high is not None
        held += one.low <= 0.1 <= one.high
    assert 0.91 <= held / 300 <= 0.99


def test_interval_is_students() -> None:
    # Four differences with mean 2 and deviation 1: 2 +- 3.182446 / 2.
    spread = [2 - 1.5**0.5 / 1, 2.0, 2.0, 2 + 1.5**0.5]
    runs = [Run(levels={"rate": level}, seed=seed, score=value if level == "new" else 0.0)
            for seed, value in enumerate(spread) for level in ("old", "new")]  # fmt: skip
    one = effect(runs, "rate", "old", "new")
    assert one is not None and one.low is not None
    assert one.mean == pytest.approx(2)
    assert one.mean - one.low == pytest.approx(3.182446 / 2, rel=1e-6)


def test_an_incomplete_design_compares_only_what_has_both() -> None:
    def lacking(levels: dict[str, str], seed: int) -> bool:
        return levels["runtime"] == "ort" and levels["optimiser"] == "sgd"

    def rule(levels: dict[str, str]) -> float:
        # What is lacking would pull the others' means down.
        return _additive(levels) - 0.4 * (levels["optimiser"] == "sgd")

    runs = _made(rule, lacking=lacking)
    ort = effect(runs, "runtime", "torch", "ort")
    optimiser = effect(runs, "optimiser", "sgd", "adamw")
    assert ort is not None and optimiser is not None
    assert (ort.mean, ort.blocks) == (pytest.approx(0.0, abs=1e-12), 3)
    assert (optimiser.mean, optimiser.blocks) == (pytest.approx(0.5), 6)


def test_a_block_that_lacks_a_seed_is_left_out() -> None:
    runs = _made(_additive, lacking=lambda levels, seed: seed == 2 and levels == BASE)
    one = effect(runs, "optimiser", "sgd", "adamw")
    assert one is not None
    assert (one.seeds, one.blocks) == (len(SEEDS), 8)


def test_nothing_to_compare_gives_none() -> None:
    runs = _made(_additive, lacking=lambda levels, seed: levels["optimiser"] == "adamw")
    assert effect(runs, "optimiser", "sgd", "adamw") is None
    assert effect([], "optimiser", "sgd", "adamw") is None


def test_one_seed_has_no_interval() -> None:
    runs = [run for run in _made(_additive) if run.seed == 0]
    one = effect(runs, "rate", "old", "new")
    assert one is not None
    assert (one.mean, one.low, one.high, one.shown) == (pytest.approx(0.2), None, None, False)


def test_given_holds_another_factor_at_one_level() -> None:
    def rule(levels: dict[str, str]) -> float:
        return 0.3 * (levels["rate"] == "new") * (levels["optimiser"] == "sgd")

    runs = _made(rule)
    means = [
        one.mean
        for level in LEVELS["optimiser"]
        if (one := effect(runs, "rate", "old", "new", given={"optimiser": level})) is not None
    ]
    assert means == [pytest.approx(0.3), pytest.approx(0.0, abs=1e-12)]
    both = interaction(runs, "rate", ("old", "new"), "optimiser", ("sgd", "adamw"))
    assert both is not None
    assert (both.factor, both.mean) == ("rate:optimiser", pytest.approx(-0.3))
    none = interaction(_made(_additive), "rate", ("old", "new"), "optimiser", ("sgd", "adamw"))
    assert none is not None and none.mean == pytest.approx(0.0, abs=1e-12)


def test_spread_is_the_seeds_luck() -> None:
    luck = np.random.default_rng(0).normal(0, 0.2, len(SEEDS))
    assert spread_of(_made(_additive)) == pytest.approx(float(np.std(luck, ddof=1)))
    assert spread_of([run for run in _made(_additive) if run.seed == 0]) is None


def test_two_runs_of_the_same_and_unknown_factors_are_refused() -> None:
    runs = _made(_additive)
    with pytest.raises(ValueError, match="two runs of seed 0"):
        effect([*runs, runs[0]], "rate", "old", "new")
    with pytest.raises(ValueError, match="no factor 'colour'"):
        effect(runs, "colour", "old", "new")
