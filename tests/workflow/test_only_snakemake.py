"""What only Snakemake shows of one study: what waits, what is done, its own report, its command line, other users."""

from __future__ import annotations

import html
import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: told
title: {title}
workloads: {{iris-mlp-ce: {{epochs: 2}}}}
profile: {{samples: 5}}
train:
  repeats: 2
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [single]}}
forecast: {{grids: [{{}}]}}
"""
FILE = "told.yaml"
CONFIG = f"study={FILE}"
# No permission stops root; without capabilities it is a user like others.
_AS_A_USER = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]


@pytest.fixture(scope="module")
def done(checkout):
    """A checkout in which Snakemake has run the study once: it, too, knows what waits."""
    (checkout.folder / FILE).write_text(STUDY.format(title="first"))
    run = checkout.snakemake("--config", CONFIG)
    assert run.returncode == 0, run.stderr
    return checkout


def of(place, stage):
    return list(place.records("told", stage).values())


def times_of(checkout):
    """Return when each file of the study was written."""
    paths = (checkout.folder / "results/told").rglob("*")
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


def test_one_prediction_for_all_repeats_is_stored_before_they_begin(done):
    (told,) = of(done, "forecast")
    assert told["status"] == "ok", told["message"]
    trained = of(done, "train")
    assert [one["status"] for one in trained] == ["ok", "ok"]
    assert min(one["started"] for one in trained) >= told["ended"]
    assert told["details"]["for"] in {one["cell_id"] for one in trained}
    numbers = {one["name"]: one["value"] for one in told["metrics"]}
    assert numbers["predicted_step_time"] > 0
    assert done.why(FILE) == {} and done.pending(FILE, report=False) == set()


def test_its_report_holds_the_page_and_its_data_by_category_and_changes_no_result(done):
    before = times_of(done)
    told = done.snakemake("--report", "workflow-report.html", "--config", CONFIG)
    assert told.returncode == 0, told.stderr
    assert times_of(done) == before
    page = html.unescape((done.folder / "workflow-report.html").read_text())
    for name, category in (("report.html", "Report"), ("records.parquet", "Data"), ("summary.json", "Data")):
        assert name in page and f'"{category}"' in page
    assert "Results of one study of transect" in page


def test_a_prediction_that_is_made_again_reruns_no_training_and_shows_that_it_is_younger(done):
    before = done.records("told")
    for path in (done.folder / "results/told/profile").glob("*/record.json"):
        path.unlink()
    run = done.make(FILE)
    assert run.returncode == 0, run.stderr
    assert {name.split("/")[0] for name in done.made_again("told", before)} == {"profile", "forecast"}
    (told,) = of(done, "forecast")
    assert all(told["ended"] > one["started"] for one in of(done, "train"))
    # A prediction younger than what waited for it is no reason for Snakemake either: not one job starts.
    before = times_of(done)
    run = done.snakemake("--config", CONFIG)
    assert run.returncode == 0 and "[transect]" not in run.stderr
    assert times_of(done) == before


def test_it_adds_nothing_to_the_message_about_a_bad_study(done):
    (done.folder / "bad.yaml").write_text(STUDY.format(title="bad").replace("numpy", "nunpy").replace("told", "bad"))
    ran = done.snakemake("--config", "study=bad.yaml")
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert ran.stderr.endswith(done.transect("check", "bad.yaml").stderr) and "nunpy" in ran.stderr
    assert not (done.folder / "results" / "bad").exists()


@pytest.fixture
def as_a_user(done):
    """Return what calls Snakemake as a user like others, in a folder of results that may be read only."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root needs setpriv to be a user like others")
    prefix = _AS_A_USER if os.geteuid() == 0 else []
    variables = done.environment() | {"PYTHONPATH": str(done.folder / "src")}

    def call(*arguments):
        command = [*prefix, *done.command("--config", CONFIG, *arguments)]
        return subprocess.run(command, cwd=done.folder, env=variables, capture_output=True, text=True)

    folder = str(done.folder / "results")
    subprocess.run(["chmod", "-R", "a-w", folder], check=True)
    yield call
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)


def test_a_run_in_anothers_results_is_refused_in_words(done, as_a_user):
    (done.folder / FILE).write_text(STUDY.format(title="another"))
    # Another clone, of a user who has never run this.
    shutil.rmtree(done.folder / ".snakemake")
    ran = as_a_user("--forceall")
    assert ran.returncode == 2, ran.stderr
    assert "results" in ran.stderr and "cannot be written" in ran.stderr
    assert "--config results=FOLDER" in ran.stderr
    assert "Traceback" not in ran.stderr
    dry = as_a_user("--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "[transect] no cell would run" in dry.stderr
