"""The serial part of times over ranks: found where it is known, and not told where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from transect.analysis.amdahl import serial_part


@pytest.mark.parametrize(("share", "ranks"), [(0.0, (1, 2, 4)), (0.2, (1, 2, 3)), (0.9, (1, 8))])
def test_the_serial_part_of_exact_times_is_found_exactly(share, ranks):
    points = [(p, share + (1 - share) / p) for p in ranks for _ in range(2)]
    found = serial_part(points)
    assert found.share == pytest.approx(share, abs=1e-9)
    assert found.low == pytest.approx(share, abs=1e-6) == found.high
    assert found.ranks == ranks


def test_the_interval_of_the_serial_part_holds_it_as_often_as_it_says():
    draw, held, told = np.random.default_rng(5), 0, 0
    for _ in range(400):
        points = [(p, (0.3 + 0.7 / p) * (1 + draw.normal(0, 0.04))) for p in (1, 2, 4) for _ in "ab"]
        found = serial_part(points)
        told += found.share is not None
        held += found.share is not None and found.low <= 0.3 <= found.high
    assert told > 380 and 0.92 <= held / told <= 0.98


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "nothing was measured"),
        ([(1, 1.0), (2, 1.2), (4, 1.3)], "no larger number"),
        ([(1, 1.0), (2, 0.6)], "two runs"),
        ([(1, 1.0), (1, 0.2), (2, 0.9), (2, 0.1)], "scatter too much"),
        ([(1, 1.0), (1, 1.01), (2, 0.45), (2, 0.46), (4, 0.2)], "gain more"),
    ],
)
def test_what_the_times_cannot_tell_is_not_told(points, reason):
    found = serial_part(points)
    assert found.share is None and reason in found.reason
    assert (found.low, found.high) == (0.0, 1.0)


def test_times_beyond_the_fastest_take_no_part_in_the_law():
    points = [(p, 0.5 + 0.5 / p) for p in (1, 2, 4)]
    assert serial_part([*points, (8, 2.0)]) == serial_part(points)
