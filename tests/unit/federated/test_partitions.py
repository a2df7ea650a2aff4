"""Who has which rows, and how long turns take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.domain.errors import BadInput
from transect.federated.partitions import AS_GIVEN, dealt, durations, grouped, parsed

Y = np.random.default_rng(3).integers(0, 10, 300)
KINDS = ("iid", "dirichlet-0.5", "labels-2")


@given(st.sampled_from(KINDS), st.integers(1, 20), st.integers(0, 2**40))
def test_every_row_has_one_client_and_every_client_rows(kind: str, clients: int, seed: int) -> None:
    made = dealt(kind, Y, clients, seed)
    assert len(made) == clients and made.sizes.all()
    assert sorted(made.rows) == list(range(len(Y)))
    again = dealt(kind, Y, clients, seed)
    np.testing.assert_array_equal(made.rows, again.rows)


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_deals_otherwise(kind: str) -> None:
    assert (dealt(kind, Y, 7, 1).rows != dealt(kind, Y, 7, 2).rows).any()


def classes_of(kind: str, clients: int = 10) -> float:
    """The mean number of classes that a client has."""
    made = dealt(kind, Y, clients, 11)
    return float(np.mean([len(np.unique(Y[made.of(client)])) for client in range(clients)]))


def test_iid_sizes_differ_by_one_and_mixes_are_alike() -> None:
    assert set(dealt("iid", Y, 7, 1).sizes) == {42, 43}
    assert classes_of("iid") > 9


def test_labels_give_each_client_few_classes() -> None:
    # A piece may reach over the border of two classes.
    made = dealt("labels-2", Y, 10, 4)
    assert max(len(np.unique(Y[made.of(client)])) for client in range(10)) <= 4
    assert classes_of("labels-2") < 4 < classes_of("labels-5")


def test_a_smaller_concentration_is_less_even() -> None:
    largest = [np.bincount(Y[dealt(f"dirichlet-{a}", Y, 5, 2).of(0)], minlength=10).max() for a in ("0.1", "100")]
    uneven = [dealt(f"dirichlet-{a}", Y, 5, 2).sizes.std() for a in ("0.1", "100")]
    assert uneven[0] > 3 * uneven[1] and largest[0] > 0


def test_a_data_set_may_say_whose_rows_they_are() -> None:
    made = dealt(AS_GIVEN, Y[:4], 2, 1, np.array([1, 0, 1, 1]))
    assert made.of(0).tolist() == [1] and made.of(1).tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("kind", "clients", "y", "owners", "said"),
    [
        (AS_GIVEN, 2, Y[:3], None, "does not say which row belongs"),
        (AS_GIVEN, 2, Y[:3], np.array([0, 0, 0]), "of 2 clients 1 have rows"),
        (AS_GIVEN, 2, Y[:3], np.array([0, 1, 2]), "the highest number is 2"),
        ("iid", 4, Y[:3], None, "4 clients, and 3 rows"),
        ("dirichlet-0.5", 2, np.zeros((9, 4)), None, "no classes"),
        ("labels-2", 2, np.zeros(9), None, "no classes"),
        ("dirichlet-0.01", 250, Y, None, "fewer clients, or a larger number"),
    ],
)
def test_what_cannot_be_dealt_out_says_why(
    kind: str, clients: int, y: np.ndarray, owners: np.ndarray | None, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        dealt(kind, y, clients, 1, owners)


@pytest.mark.parametrize(
    "typed",
    [
        "labels",
        "labels-0",
        "labels-1.5",
        "labels-1000",
        "dirichlet-0",
        "dirichlet--1",
        "iid-3",
        "",
        "x",
        "as-given-2",
        "drawn",
        "drawn-0",
        "drawn-2.5",
    ],
)
def test_a_partition_that_there_is_not(typed: str) -> None:
    with pytest.raises(BadInput, match="expected iid, dirichlet-A"):
        parsed(typed)


def test_clients_may_draw_of_all_rows() -> None:
    made = dealt("drawn-30", Y, 400, 3)
    assert set(made.sizes) == {30} and len(made) == 400
    counts = np.bincount(made.rows, minlength=len(Y))
    # 12,000 draws of 300 rows, 40 each: seven deviations of a Poisson number.
    assert counts.min() > 0 and counts.max() < 40 + 7 * 40**0.5
    np.testing.assert_array_equal(dealt("drawn-30", Y, 10, 3).rows, made.rows[:300])
    assert len(dealt("drawn-2", Y, 1000, 3)) == 1000


def test_grouped_keeps_the_order_of_rows() -> None:
    assert grouped(np.array([1, 0, 1, 0]), 2).rows.tolist() == [1, 3, 0, 2]


def test_durations_are_lognormal_with_median_one() -> None:
    taken = durations(20_000, 0.8, 9)
    assert durations(5, 0.0, 9).tolist() == [1.0] * 5
    assert abs(np.log(taken).mean()) < 0.02 and abs(np.log(taken).std() - 0.8) < 0.02
