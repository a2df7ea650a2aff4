"""Pipelines in a study: cells by their options, records that say which layers each rank had."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.study, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def records(shared) -> dict:
    """The training records by id, without its fingerprint."""
    found = shared.records("shared", "train").values()
    own = [one for one in found if one["cell"]["strategy"] == "mpi-pipeline" and one["cell"]["batch"] == 60]
    return {one["cell_id"].split("~")[0]: one for one in own}


def test_pipelines_follow_the_float64_path(records):
    cells = [one for one in records.values() if one["cell"]["ranks_per_node"] == 4]
    assert len(cells) == 4
    for record in cells:
        assert record["status"] == "ok", record["message"]
        values = {one["name"]: one["value"] for one in record["metrics"]}
        assert 0 < values["equality_ratio"] < 1 and values["restart_ratio"] < 1
        assert 0 < values["weights_equality_ratio"] < 1
        assert 0 <= values["bubble"] < 1


def test_a_record_says_who_had_which_layers(records):
    (record,) = (one for name, one in records.items() if "numpy" in name and "gpipe" in name)
    details = record["details"]
    assert details["layout"] == {"replicas": 2, "model_parts": 2, "micro_batches": 4, "servers": 0}
    assert [one["layers"] for one in details["ranks"]] == [[0, 4], [4, 8]] * 2
    assert [one["replica"] for one in details["ranks"]] == [0, 0, 1, 1]


def test_what_cannot_be_cut_is_skipped_with_its_reason(records):
    skipped = [one for one in records.values() if one["status"] == "skipped"]
    assert {one["cause"] for one in skipped} == {"unsupported"}
    few, cut = sorted(one["message"] for one in skipped)
    assert few.startswith("3 ") and "2 stages" in few
    assert cut.startswith("cut ") and "2-1" in cut
