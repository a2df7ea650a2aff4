"""A parameter server: what can be checked is, what cannot says so, and a death ends all."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]

WORKERS = 2


@pytest.fixture(scope="module")
def records(shared) -> list[dict]:
    """The cells of the parameter server, and those of the same numbers of ranks in step."""
    found = shared.records("shared", "train").values()
    return [one for one in found if (one["cell"]["workload"], one["cell"]["batch"]) == ("iris-mlp-ce", 12)]


def of(records, **axes):
    return [one for one in records if all(one["cell"].get(name) == value for name, value in axes.items())]


def values(record):
    return {one["name"]: one["value"] for one in record["metrics"]}


def test_without_staleness_the_reference_is_followed(records):
    found = [
        one
        for one in of(records, strategy="async", framework="numpy", ranks_per_node=3)
        if dict(one["cell"]["options"]).get("staleness") == 0
    ]
    assert len(found) == 2
    for record in found:
        assert record["status"] == "ok", record["message"]
        assert values(record)["equality_ratio"] < 1 and values(record)["restart_ratio"] < 1
        assert "not_checkable" not in record["details"]


def test_with_it_nothing_is_called_equal_and_nothing_is_lost(records):
    found = [
        one
        for one in of(records, strategy="async", framework="numpy", ranks_per_node=3)
        if dict(one["cell"]["options"]).get("staleness") != 0
    ]
    assert len(found) == 4
    for record in found:
        assert record["status"] == "ok", record["message"]
        assert not [name for name in values(record) if "equality" in name]
        details = record["details"]
        assert details["not_checkable"].startswith("asynchronous: ")
        steps = 12 * details["steps_per_epoch"]
        assert details["updates"]["gradients_sent"] == WORKERS * steps
        assert details["updates"]["gradients_applied"] == WORKERS * steps
        assert len({one["weights_crc32"] for one in details["ranks"]}) == 1
        assert record["samples"]["staleness"]["count"] == WORKERS * steps
        assert values(record)["staleness"] <= details["updates"]["largest_staleness"]


def test_a_server_alone_is_skipped_with_its_reason(records):
    alone = of(records, strategy="async", ranks_per_node=1)
    assert len(alone) == 6
    assert {(one["status"], one["cause"]) for one in alone} == {("skipped", "unsupported")}
    assert all("at least 2 ranks" in one["message"] for one in alone)


@pytest.mark.parametrize(("framework", "who"), [("test-server-dies", "rank 0"), ("test-worker-dies", "rank 2")])
def test_a_rank_that_dies_ends_all_and_is_named(records, framework, who):
    [record] = of(records, framework=framework)
    assert (record["status"], record["cause"]) == ("failed", "killed"), record["message"]
    assert who in record["message"]
