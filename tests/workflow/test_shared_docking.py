"""Docking, cut down: what runs is checked, what is wrong or missing is told by its cause."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def records(shared):
    """What each cell of docking came to."""
    found = shared.records("shared", "bench").values()
    return [one for one in found if one["cell"]["benchmark"] == "docking-probe"]


def of(records, **wanted):
    """Return the records whose options hold these."""
    return [
        one
        for one in records
        if wanted.items() <= (dict(one["cell"]["options"]) | {"device": one["cell"]["device"]}).items()
    ]


def test_right_energies_make_times(records):
    for one in [*of(records, implementation="openmp", deck="small", ppwi=None), *of(records, implementation="rust")]:
        assert one["status"] == "ok", one["message"]
    good = [one for one in records if one["status"] == "ok"]
    assert len(good) == 6
    for one in good:
        numbers = {metric["label"]: metric["value"] for metric in one["metrics"]}
        assert numbers["pose-time_median"] * numbers["interactions_median"] == pytest.approx(8 * 128, rel=1e-4)
        (run,) = one["details"]["runs"]
        assert run["parameters"]["verified"] == "yes"
        assert [len(run["samples"][name]["values"]) for name in ("kernel", "warm-up")] == [2, 1]
        assert run["parameters"]["pin"].startswith("threads on CPU ")


@pytest.mark.parametrize(
    ("deck", "cause", "told"), [("wrong", "wrong-result", "energies"), ("cut", "bad-input", "protein.in has 637 bytes")]
)
def test_a_deck_that_is_wrong_or_cut_is_told(records, deck, cause, told):
    found = [one for one in records if str(dict(one["cell"]["options"])["deck"]).endswith(f"/{deck}")]
    assert len(found) == 2
    for one in found:
        assert (one["status"], one["cause"], one["metrics"]) == ("failed", cause, []) and told in one["message"]


def test_what_is_missing_is_skipped_with_its_own_words(records):
    for one in of(records, implementation="openacc", device="cuda"):
        assert (one["status"], one["cause"]) == ("skipped", "missing-dependency")
        assert "clang" in one["message"]
    for one in of(records, implementation="julia"):
        assert one["status"] == "ok" or "julia is not on PATH" in one["message"]
    for one in of(records, ppwi=3):
        assert (one["status"], one["cause"]) == ("skipped", "unsupported")
