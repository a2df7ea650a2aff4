"""Aggregations: their papers' rules, and what holds for all."""

from __future__ import annotations

import re

import numpy as np
import pytest
from aggregation_rules import RULES, Round
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from transect.domain.errors import BadInput
from transect.domain.options import chosen_options, settings
from transect.federated.aggregations import AGGREGATIONS, Summed, Updates
from transect.federated.aggregations._staleness import UNIT
from transect.federated.exact_sum import LIMIT, ExactSum

NAMES = sorted(AGGREGATIONS)
# Which of these a rule takes from equally good ones is a matter of their order.
BY_ORDER = {"krum", "multi-krum", "bulyan"}
ROBUST = sorted({"median", "trimmed-mean", "geometric-median", "centred-clipping", *BY_ORDER})
# What is tried besides the defaults.
CASES = [
    *((name, {}) for name in NAMES),
    ("fedavg", {"server_rate": 0.5}),
    ("fedavgm", {"server_rate": 0.3, "momentum": 0.5}),
    ("fedadagrad", {"beta_1": 0.9, "tau": 0.1}),
    ("fedadam", {"beta_1": 0.5, "beta_2": 0.9, "tau": 0.01, "server_rate": 0.02}),
    ("fedyogi", {"beta_2": 0.5, "tau": 0.5}),
    ("fedbuff", {"server_rate": 2.0, "power": 1.0}),
    ("fedasync", {"lateness": "hinge", "late": 1, "slope": 2.0}),
    ("fedasync", {"lateness": "constant", "mixing": 1.0}),
    ("trimmed-mean", {"attackers": 0}),
    ("trimmed-mean", {"attackers": 3}),
    ("krum", {"attackers": 3}),
    ("multi-krum", {"attackers": 2, "kept": 4}),
    ("bulyan", {"attackers": 2}),
    ("bulyan", {"attackers": 0}),
    ("geometric-median", {"iterations": 3, "smoothing": 0.1}),
    ("centred-clipping", {"radius": 0.5, "iterations": 3}),
]


def chosen(name: str, **given: object) -> dict:
    """Return all settings of a rule, as a cell has them."""
    known = AGGREGATIONS.get(name).options
    return settings(known, chosen_options(f"aggregation {name}", known, given, "federate"))


def drawn(seed: int, count: int = 11, size: int = 5) -> Updates:
    random = np.random.default_rng(seed)
    return Updates(
        vectors=random.normal(size=(count, size)),
        counts=random.integers(1, 50, count),
        staleness=random.integers(0, 9, count),
    )


def changed(updates: Updates, vectors: np.ndarray) -> Updates:
    return Updates(vectors=vectors, counts=updates.counts, staleness=updates.staleness)


def taken(updates: Updates, order: list[int]) -> Updates:
    return Updates(vectors=updates.vectors[order], counts=updates.counts[order], staleness=updates.staleness[order])


def after(name: str, given: dict, rounds: list[Updates], model: np.ndarray) -> np.ndarray:
    """Return the model after some rounds."""
    rule, state = AGGREGATIONS.get(name), {}
    for updates in rounds:
        model = rule.step(given, model, rule.combine(given, updates, state), state)
    return model


def change(name: str, updates: Updates, **given: object) -> np.ndarray:
    return AGGREGATIONS.get(name).combine(chosen(name, **given), updates, {})


def test_each_has_its_rule_in_plain_python():
    assert sorted(RULES) == NAMES


@pytest.mark.parametrize(("name", "given"), CASES)
def test_it_is_the_rule_of_the_paper(name, given):
    rounds, model = [drawn(seed) for seed in (1, 2, 3)], np.linspace(-1, 1, 5)
    lists = [Round(r.vectors.tolist(), r.counts.tolist(), r.staleness.tolist()) for r in rounds]
    expected = RULES[name](lists, model.tolist(), **chosen(name, **given))
    found = after(name, chosen(name, **given), rounds, model)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    # No setting is without effect.
    assert not given or np.abs(found - after(name, chosen(name), rounds, model)).max() > 1e-6


@pytest.mark.parametrize(
    ("name", "vectors", "expected"),
    [
        # 1 row and 3 rows; staleness 0 and 3, so that s is 1 and 1/2.
        ("fedavg", [[4, 0], [0, 8]], [1, 6]),
        ("fedavgm", [[4, 0], [0, 8]], [1, 6]),
        ("fedbuff", [[4, 0], [0, 8]], [2, 2]),
        ("median", [[4, 0], [0, 8]], [2, 4]),
    ],
)
def test_by_head(name, vectors, expected):
    updates = Updates(vectors=np.array(vectors, float), counts=np.array([1, 3]), staleness=np.array([0, 3]))
    assert change(name, updates).tolist() == expected


def test_stale_updates_make_the_step_of_fedbuff_shorter():
    updates = Updates(vectors=np.full((2, 1), 8.0), counts=np.array([1, 9]), staleness=np.array([3, 3]))
    assert change("fedbuff", updates).tolist() == [4.0]
    assert change("fedasync", updates).tolist() == [4.0]


# With 1 or 2 attackers the last of Bulyan's choices are between two that are each other's one neighbour.
ORDERLESS = [
    *(case for case in CASES if case[0] != "bulyan"),
    ("bulyan", {"attackers": 0}),
    ("bulyan", {"attackers": 3}),
]


@pytest.mark.parametrize(("name", "given"), ORDERLESS)
@given(seed=st.integers(0, 2**32), order=st.permutations(range(15)), coarse=st.booleans())
@tries(max_examples=15, deadline=None)
def test_no_bit_depends_on_the_order_of_clients(name, given, seed, order, coarse):
    rounds = [drawn(seed, 15), drawn(seed + 1, 15)]
    if coarse and name not in BY_ORDER:
        # Many are equal, and zeros have either sign.
        rounds = [changed(one, np.trunc(one.vectors)) for one in rounds]
    model, moved = np.linspace(-1, 1, 5), [taken(one, order) for one in rounds]
    found = after(name, chosen(name, **given), moved, model)
    assert found.tobytes() == after(name, chosen(name, **given), rounds, model).tobytes()
    assert change(name, moved[0], **given).tobytes() == change(name, rounds[0], **given).tobytes()


@pytest.mark.parametrize("name", ["median", "trimmed-mean", "krum"])
def test_a_zero_has_no_sign(name):
    for signs in ([-0.0, 0.0, -0.0], [0.0, -0.0, -0.0], [-0.0, -0.0, -0.0]):
        updates = Updates(vectors=np.array([signs]).T, counts=np.ones(3, np.int64), staleness=np.zeros(3, np.int64))
        assert change(name, updates, **({"attackers": 0} if name == "krum" else {})).tobytes() == np.zeros(1).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_equal_updates_come_to_that_update(name):
    vector = np.random.default_rng(2).normal(size=6).astype(np.float32).astype(np.float64)
    for count in (7, 10, 12):
        same = Updates(
            vectors=np.tile(vector, (count, 1)), counts=np.arange(1, count + 1), staleness=np.zeros(count, np.int64)
        )
        found = change(name, same)
        if name == "centred-clipping":
            np.testing.assert_allclose(found, vector, rtol=1e-15)
        else:
            assert found.tobytes() == vector.tobytes()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "centred-clipping"])
def test_larger_updates_come_to_a_larger_change(name):
    updates = drawn(4)
    for factor in (4.0, -0.5):
        np.testing.assert_allclose(
            change(name, changed(updates, updates.vectors * factor)), change(name, updates) * factor, rtol=0, atol=1e-8
        )


@pytest.mark.parametrize("name", [*ROBUST[1:], "fedavg"])
def test_moved_updates_come_to_a_moved_change(name):
    updates, way = drawn(5), np.array([3.0, -7.0, 0.5, 100.0, 0.0])
    given = {} if name != "centred-clipping" else {"radius": 500.0}
    found = change(name, changed(updates, updates.vectors + way), **given)
    np.testing.assert_allclose(found, change(name, updates, **given) + way, rtol=0, atol=1e-6)


@pytest.mark.parametrize("attack", ["far", "two sides", "near"])
@pytest.mark.parametrize("attackers", [1, 2])
@pytest.mark.parametrize("name", ROBUST)
def test_attackers_move_a_robust_rule_no_farther_than_honest_ones_are_apart(name, attackers, attack):
    updates, random = drawn(6), np.random.default_rng(7)
    vectors = updates.vectors / 10
    size = vectors.shape[1]
    sent = {
        "far": np.full((attackers, size), LIMIT * 0.999),
        "two sides": np.where(np.arange(attackers)[:, None] % 2, -1, 1) * np.full((attackers, size), 900.0),
        "near": random.normal(size=(attackers, size)) * 5,
    }[attack]
    vectors[random.permutation(11)[:attackers]] = sent
    honest = np.array([row for row in vectors if np.abs(row).max() < 0.5])
    assert len(honest) >= 11 - attackers - 1
    given = {"attackers": attackers} if "attackers" in AGGREGATIONS.get(name).options else {}
    if name == "centred-clipping":
        given = {"radius": 0.5}
    updates = Updates(vectors=vectors, counts=np.full(11, 8), staleness=np.zeros(11, np.int64))
    middle = honest.mean(axis=0)
    farthest = np.sqrt(np.square(honest - middle).sum(axis=1)).max()
    moved = np.sqrt(np.square(change(name, updates, **given) - middle).sum())
    assert moved <= farthest
    if attack == "far":
        assert np.sqrt(np.square(change("fedavg", updates) - middle).sum()) > 100 * farthest


def test_krum_takes_no_attacker_whose_norm_hides_it():
    # Distances of 2e-4 beside weights of 3e5: as inner products of float32 they would be noise.
    vectors = np.random.default_rng(8).normal(size=(9, 40)) * 1e-5 + 900.0
    vectors[3] += 2e-4
    updates = Updates(vectors=vectors, counts=np.ones(9, np.int64), staleness=np.zeros(9, np.int64))
    kept = change("multi-krum", updates, attackers=1)
    np.testing.assert_allclose(kept, np.delete(vectors, 3, axis=0).mean(axis=0), rtol=0, atol=1e-10)


def test_of_equally_good_updates_krum_takes_the_first():
    updates = Updates(
        vectors=np.array([[2.0], [1.0], [9.0]]), counts=np.ones(3, np.int64), staleness=np.zeros(3, np.int64)
    )
    assert change("krum", updates, attackers=0).tolist() == [2.0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", sorted(BY_ORDER))
def test_ties_are_those_of_the_plain_rule(name, seed):
    vectors = np.random.default_rng(seed).integers(-2, 3, (40, 6)).astype(float)
    updates = Updates(vectors=vectors, counts=np.ones(40, np.int64), staleness=np.zeros(40, np.int64))
    expected = RULES[name]([Round(vectors.tolist(), [1] * 40, [0] * 40)], [0.0] * 6, **chosen(name, attackers=3))
    np.testing.assert_allclose(change(name, updates, attackers=3), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "given", "clients", "needed"),
    [
        ("trimmed-mean", {"attackers": 2}, 4, "expected 5 or more for 2 attackers"),
        ("krum", {"attackers": 2}, 6, "expected 7 or more for 2 attackers"),
        ("multi-krum", {"attackers": 2}, 6, "expected 7 or more for 2 attackers"),
        ("multi-krum", {"attackers": 2, "kept": 6}, 7, "kept: expected 5 at most of 7 updates with 2 attackers, got 6"),
        ("bulyan", {"attackers": 2}, 10, "expected 11 or more for 2 attackers"),
        ("fedbuff", {}, 1025, "1025 updates at once: expected 1024 at most"),
        ("fedasync", {}, 1025, "1025 updates at once: expected 1024 at most"),
        ("fedasync", {"mixing": 1.5}, 5, "mixing: expected a number from 0 to 1, got 1.5"),
        ("fedavgm", {"momentum": 1.0}, 5, "momentum: expected a number below 1, got 1.0"),
        ("fedadam", {"beta_1": 1.5, "beta_2": 1}, 5, "beta_1: expected a number below 1, got 1.5; beta_2: expected"),
        ("fedyogi", {"tau": 0.0}, 5, "tau: expected a number above 0, got 0"),
        ("geometric-median", {"smoothing": 0.0}, 5, "smoothing: expected a number above 0, got 0"),
        ("centred-clipping", {"radius": 0.0}, 5, "radius: expected a number above 0, got 0"),
    ],
)
def test_what_a_rule_cannot_do_is_said_before(name, given, clients, needed):
    rule = AGGREGATIONS.get(name)
    assert needed in rule.complaint(chosen(name, **given), clients)
    with pytest.raises(BadInput, match=re.escape(needed)):
        rule.combine(chosen(name, **given), drawn(1, clients), {})
    if "updates at once: expected" in needed or "or more" in needed:
        fewest = int(re.search(r"expected (\d+)", needed)[1])
        assert rule.complaint(chosen(name, **given), fewest) is None


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_values_that_options_take(name):
    rule = AGGREGATIONS.get(name)
    defaults = {key: option.default for key, option in rule.options.items()}
    assert chosen_options(f"aggregation {name}", rule.options, defaults, "federate") == ()
    assert rule.complaint(chosen(name), 10) is None


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(AGGREGATIONS.get(name), Summed)])
def test_a_sum_in_pieces_of_two_ranks_is_that_of_a_round(name):
    rule, given, updates = AGGREGATIONS.get(name), chosen(name), drawn(9)
    ranks = [ExactSum(5), ExactSum(5)]
    for start, end, rank in ((0, 3, 0), (3, 4, 1), (4, 11, 0)):
        weights = rule.weights(given, updates.counts[start:end], updates.staleness[start:end])
        ranks[rank].add(updates.vectors[start:end], weights)
    ranks[0].parts += ranks[1].parts
    assert (rule.mean(given, ranks[0]) + 0.0).tobytes() == rule.combine(given, updates, {}).tobytes()


def test_shares_of_late_updates_are_whole_numbers():
    rule = AGGREGATIONS.get("fedbuff")
    late = np.arange(2000)
    weights = rule.weights(chosen("fedbuff"), np.ones(2000, np.int64), late)
    assert weights[0] == UNIT
    assert (np.diff(weights) <= 0).all()
    assert np.abs(weights / UNIT - (1 + late) ** -0.5).max() <= 0.5 / UNIT
