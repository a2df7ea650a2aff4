"""Updates that no aggregation takes are refused in one place."""

from __future__ import annotations

import re

import numpy as np
import pytest

from transect.domain.errors import WrongResult
from transect.federated.aggregations import Updates
from transect.federated.exact_sum import LIMIT, MAX_WEIGHT

GOOD = np.ones((2, 3))
ONES, NONE = np.ones(2, np.int64), np.zeros(2, np.int64)


@pytest.mark.parametrize(
    ("vectors", "counts", "staleness", "said"),
    [
        (np.array([[1.0], [np.nan]]), ONES, NONE, "not finite, or not below 1024"),
        (np.array([[1.0], [-np.inf]]), ONES, NONE, "not finite, or not below 1024"),
        (np.array([[1.0], [LIMIT]]), ONES, NONE, "not finite, or not below 1024"),
        (GOOD, np.array([0, 1]), NONE, f"counts of updates: expected 1 to {MAX_WEIGHT}, got 0"),
        (GOOD, np.array([5, -3]), NONE, f"counts of updates: expected 1 to {MAX_WEIGHT}, got -3"),
        (GOOD, np.array([5, 10**9]), NONE, f"counts of updates: expected 1 to {MAX_WEIGHT}, got 1000000000"),
        (GOOD, np.array([1.0, 2.0]), NONE, "counts of updates: expected int64 (2,), got float64 (2,)"),
        (GOOD, np.ones(3, np.int64), NONE, "counts of updates: expected int64 (2,), got int64 (3,)"),
        (GOOD, ONES, np.array([0, -1]), "staleness of updates: expected 0 to"),
        (GOOD.astype(np.float32), ONES, NONE, "expected float64 (n, d) of one client at least, got float32 (2, 3)"),
        (np.empty((0, 3)), NONE[:0], NONE[:0], "of one client at least, got float64 (0, 3)"),
        (np.ones(3), ONES, NONE, "expected float64 (n, d)"),
    ],
)
def test_updates_that_no_rule_takes(vectors, counts, staleness, said):
    with pytest.raises(WrongResult, match=re.escape(said)):
        Updates(vectors=vectors, counts=counts, staleness=staleness)
