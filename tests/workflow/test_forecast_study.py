"""A prediction is there before its training begins, and what becomes of it reruns no training."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: told
workloads: {iris-mlp-ce: {epochs: 2}}
profile: {samples: 5}
train:
  repeats: 2
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [single]}
forecast: {grids: [{}]}
"""
FILE = "told.yaml"


@pytest.fixture(scope="module")
def done(checkout):
    """A checkout in which Snakemake has run the study once: it, too, knows what waits."""
    (checkout.folder / FILE).write_text(STUDY)
    run = checkout.snakemake("--config", f"study={FILE}")
    assert run.returncode == 0, run.stderr
    return checkout


def of(place, stage):
    return list(place.records("told", stage).values())


def test_one_prediction_for_all_repeats_is_stored_before_they_begin(done):
    (prediction,) = of(done, "forecast")
    assert prediction["status"] == "ok", prediction["message"]
    trained = of(done, "train")
    assert [record["status"] for record in trained] == ["ok", "ok"]
    assert min(record["started"] for record in trained) >= prediction["ended"]
    assert prediction["details"]["for"] in {record["cell_id"] for record in trained}
    numbers = {metric["name"]: metric["value"] for metric in prediction["metrics"]}
    assert numbers["predicted_step_time"] > 0
    assert done.why(FILE) == {} and done.pending(FILE, report=False) == set()


def test_a_prediction_that_is_made_again_reruns_no_training_and_shows_that_it_is_younger(done):
    before = done.records("told")
    for path in (done.folder / "results/told/profile").glob("*/record.json"):
        path.unlink()
    run = done.make(FILE)
    assert run.returncode == 0, run.stderr
    # A prediction younger than what waited for it is no reason for Snakemake either.
    assert done.summary(f"study={FILE}") == set()
    assert {name.split("/")[0] for name in done.made_again("told", before)} == {"profile", "forecast"}
    (prediction,) = of(done, "forecast")
    assert all(prediction["ended"] > record["started"] for record in of(done, "train"))


def test_snakemake_runs_nothing_again(done):
    before = done.records("told")
    run = done.snakemake("--config", f"study={FILE}")
    assert run.returncode == 0, run.stderr
    assert done.records("told") == before
    assert done.summary(f"study={FILE}") == set()
