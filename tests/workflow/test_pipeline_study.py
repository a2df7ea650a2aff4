"""Pipelines in a study: cells by their options, records that say which layers each rank had."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: pipelines
limits: {seconds: 600, repeats_if_disturbed: 0}
workloads: {digits-cnn: {epochs: 1, reference_steps: 8, batch: 60}}
train:
  repeats: 1
  grids:
    - workloads: [digits-cnn]
      frameworks: [numpy, torch]
      strategies: [mpi-pipeline]
      ranks: [4]
      options: [{micro_batches: 7, wait: spin}, {stages: 2, schedule: gpipe, cut: equal}]
    - workloads: [digits-cnn]
      frameworks: [numpy]
      strategies: [mpi-pipeline]
      ranks: [3]
      options: [{stages: 2}, {cut: 2-1}]
"""


@pytest.fixture(scope="module")
def records(checkout) -> dict:
    """The training records by id, without its fingerprint."""
    (checkout.folder / "pipelines.yaml").write_text(STUDY)
    ran = checkout.python("-m", "transect", "run", "pipelines.yaml", "train", timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = checkout.records("pipelines", "train").values()
    return {one["cell_id"].split("~")[0]: one for one in found}


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
    assert details["layout"] == {
        "replicas": 2, "model_parts": 2, "micro_batches": 4, "servers": 0,
    }  # fmt: skip
    assert [one["layers"] for one in details["ranks"]] == [[0, 4], [4, 8]] * 2
    assert [one["replica"] for one in details["ranks"]] == [0, 0, 1, 1]


def test_what_cannot_be_cut_is_skipped_with_its_reason(records):
    said = {one["message"] for one in records.values() if one["status"] == "skipped"}
    assert said == {
        "3 ranks are no replicas of 2 stages",
        "cut 2-1 leaves a stage of the model's 8 layers without one",
    }
