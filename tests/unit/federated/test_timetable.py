"""Who trains when: in rounds, and where the server waits for some."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transect.federated.draws import Purpose, draw
from transect.federated.timetable import buffered, in_rounds


def test_rounds_draw_a_cohort_and_wait_for_the_slowest() -> None:
    durations = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    table = in_rounds(50, 2, durations, 7)
    assert all(len(set(row)) == 2 and list(row) == sorted(row) for row in table.client.tolist())
    assert set(table.client.ravel()) == set(range(5))
    np.testing.assert_array_equal(table.version, np.arange(50)[:, None].repeat(2, axis=1))
    np.testing.assert_allclose(np.diff(table.time, prepend=0.0), durations[table.client].max(axis=1))
    assert table.number.ravel().tolist() == list(range(100))


def test_a_buffer_of_alike_clients_is_hand_made() -> None:
    # Two of four train at once, each for one unit; the server makes a model of each two updates.
    table = buffered(3, 2, 2, np.ones(4), 1)
    assert table.number.tolist() == [[0, 1], [2, 3], [4, 5]]
    # The first to end is followed before the model is made, the second after it.
    assert table.version.tolist() == [[0, 0], [0, 1], [1, 2]]
    assert table.time.tolist() == [1.0, 2.0, 3.0]


def test_a_fast_client_does_not_wait_for_a_slow_one() -> None:
    durations = np.array([1.0, 10.0])
    table = buffered(8, 2, 1, durations, 1)
    # Client 0 goes on with each model that it has made, client 1 comes in at time 10 with the first.
    assert table.client.ravel().tolist() == [0] * 8
    assert table.time.tolist() == list(map(float, range(1, 9)))
    late = buffered(12, 2, 1, durations, 1)
    place = late.client.ravel().tolist().index(1)
    assert late.version[place, 0] == 0 and late.time[place] == 10.0


@given(
    st.integers(1, 6), st.integers(0, 6), st.integers(1, 7), st.integers(1, 10), st.integers(0, 2**40), st.floats(0, 2)
)
def test_a_buffer_applies_turns_as_they_end(
    cohort: int, more: int, buffer: int, rounds: int, seed: int, slowness: float
) -> None:
    durations = np.exp(slowness * np.random.default_rng(seed).normal(size=cohort + more))
    table = buffered(rounds, cohort, buffer, durations, seed)
    client, number, version = (array.ravel() for array in (table.client, table.number, table.version))
    update = np.repeat(np.arange(rounds), buffer)
    assert len(set(number.tolist())) == rounds * buffer
    assert (version <= update).all() and (np.diff(table.time) >= 0).all()
    # Each turn begins when the model it has is made at the earliest, and ends when it is applied at the latest.
    made = np.concatenate([[0.0], table.time])
    assert (made[version] + durations[client] <= made[update + 1] + 1e-9).all()
    # Nobody trains twice at a time: who comes again begins on what was the newest model when the turn before was applied.
    for one in set(client.tolist()):
        own = sorted(np.flatnonzero(client == one), key=number.__getitem__)
        assert all(version[after] >= update[before] for before, after in pairwise(own))


def test_who_comes_next_has_the_drawn_place_in_the_row() -> None:
    # By 64 bits for each turn, in five clients' row of who is not training.
    first, second, third = (int(draw(9, Purpose.NEXT_CLIENT, turn)[0]) / 2**64 for turn in range(3))
    row = [0, 1, 2, 3, 4]
    expected = []
    for share in (first, second):
        place = int(share * len(row))
        expected.append(row[place])
        row[place] = row[-1]
        row.pop()
    row.append(expected[0])
    expected.append(row[int(third * len(row))])
    assert buffered(3, 2, 1, np.ones(5), 9).client.ravel().tolist() == expected
