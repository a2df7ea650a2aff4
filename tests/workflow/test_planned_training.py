"""`transect train`: from a workload to a checked record in one call."""

from __future__ import annotations

import json

import yaml

from checkouts import Place


def test_one_call_profiles_plans_trains_and_checks(tmp_path):
    asked = ("train", "iris-mlp-ce", "--framework", "numpy", "--ranks", "2", "--results", "results")
    done = Place(tmp_path).transect(*asked, "--plan", "model", "--measure", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert (result["plan"]["kind"], result["plan"]["stages"]) == ("model", 2)
    (record,) = result["records"]
    assert record["status"] == "ok" and record["metrics"]["step_time"] > 0
    folder = tmp_path / "results" / "planned-iris-mlp-ce-numpy-1x2"
    grid = yaml.safe_load((folder / "study.yaml").read_text())["train"]["grids"][0]
    assert grid["options"] == [result["plan"]["options"]]
    # It was held to the reference, and each rank says which layers it had.
    kept = json.loads((folder / "train" / record["cell"] / "record.json").read_text())
    assert "reference" in json.loads((folder / "train" / record["cell"] / "spec.json").read_text())["inputs"]
    layers = [rank["layers"] for rank in kept["details"]["ranks"]]
    assert layers == [list(pair) for pair in result["plan"]["layers"]]
    # A plan from the profiles that the first call left; nothing runs again.
    profiles = f"results/{folder.name}-profile"
    again = Place(tmp_path).transect("plan", *asked[1:6], "--plan", "model", "--profile", profiles, "--json")
    assert again.returncode == 0, again.stderr
    # The same division; where it is cut may follow messages, which are measured anew.
    planned = json.loads(again.stdout)
    assert planned["stages"] == 2 and planned["costs"].startswith("profiles of micro-batches")


def test_a_plan_that_nothing_fits_runs_nothing(tmp_path):
    done = Place(tmp_path).transect(
        "train", "iris-mlp-ce", "--framework", "numpy", "--ranks", "2", "--memory", "10B", "--results", "results"
    )
    assert done.returncode == 2 and "memory: layer" in done.stderr
    assert not (tmp_path / "results").exists()
