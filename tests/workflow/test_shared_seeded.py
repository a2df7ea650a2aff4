"""Mistakes between ranks are wrong results: fast, and found by the float64 reference."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

# Each with the strategy that it spoils.
WRONG = {
    "seeded-weight": "mpi-pipeline",
    "seeded-late": "mpi-overlap",
    "seeded-stale": "mpi-overlap-bcast",
    "seeded-halo": "spatial",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_between_ranks_are_wrong_results(shared, wrong):
    found = {
        one["cell"]["strategy"]: one for one in shared.records("shared", "train").values() if one["cell"]["batch"] == 32
    }
    assert set(found) == {*WRONG, *WRONG.values()}
    right = found[WRONG[wrong]]
    assert right["status"] == "ok", right["message"]
    assert found[wrong]["cause"] == "wrong-result", found[wrong]["message"]
    assert "leaves the float64 reference at step" in found[wrong]["message"]
