"""Cells that a study compares take turns, ranks of MPI too; what is missing of a heat runs again alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from checkouts import ROOT, Place

pytestmark = pytest.mark.study

STUDY = """
name: heats
workloads: {iris-mlp-ce: {epochs: 20}}
limits: {repeats_if_disturbed: 0}
train:
  repeats: 3
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}
"""
FILE = "heats.yaml"
# Against hanging, on a machine however busy.
BOUND_S = 600


@pytest.fixture(scope="module")
def study(place: Place) -> Place:
    (place.folder / FILE).write_text(STUDY)
    return place


def test_an_interruption_in_the_midst_of_a_heat_leaves_no_process_and_no_record_behind(study: Place) -> None:
    (study.folder / FILE).write_text(STUDY.replace("epochs: 20", "epochs: 3000"))
    command = [sys.executable, "-c", "from transect.cli.main import run; run()", "run", FILE, "train"]
    environment = study.environment() | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(command, cwd=study.folder, env=environment, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + BOUND_S
        cells = set[str]()
        while len(cells) < 2:
            assert process.poll() is None and time.monotonic() < limit
            cells = {Path(log).parent.name for log in study.folder.glob("results/heats/train/*/output.log")}
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=BOUND_S)
    finally:
        process.kill()
        process.wait()
        (study.folder / FILE).write_text(STUDY)
    assert process.returncode == 128 + signal.SIGTERM
    assert study.payloads() == [] and study.records("heats", "train") == {}


def test_the_cells_of_each_repeat_take_turns_step_by_step(study: Place) -> None:
    done = study.make(FILE)
    assert done.returncode == 0, done.stderr
    heats: dict[str, list[dict]] = {}
    for record in study.records("heats", "train").values():
        assert record["status"] == "ok", record["message"]
        turns = record["details"]["turns"]
        heats.setdefault(turns["heat"], []).append(record)
        assert len(turns["seconds"]) == len(turns["counts"]) == len(turns["quiet"]) == 12
        assert turns["metric"] == "step_time" and min(turns["seconds"]) > 0
        assert record["details"]["waited_s"] > 0
        metrics = {metric["name"]: metric["value"] for metric in record["metrics"]}
        # Neither waiting nor testing is training.
        steps = record["samples"]["step_time"]["count"]
        assert metrics["train_time"] < record["details"]["payload_s"] and metrics["evaluation_time"] > 0
        assert steps == 20 * record["details"]["steps_per_epoch"]
    assert len(heats) == 3
    for members in heats.values():
        assert len({record["cell"]["repeat"] for record in members}) == 1
        assert {record["cell"]["strategy"] for record in members} == {"single", "mpi-allreduce"}
        assert len({str(record["details"]["turns"]["counts"]) for record in members}) == 1


def test_what_is_missing_of_a_heat_runs_again_alone_and_the_others_stay(study: Place) -> None:
    before = study.records("heats")
    lost = min(key for key in before if key.startswith("train/"))
    os.unlink(study.folder / "results/heats" / lost / "record.json")
    assert study.make(FILE).returncode == 0
    assert study.made_again("heats", before) == {lost}
    again = json.loads((study.folder / "results/heats" / lost / "record.json").read_text())
    # No turns of one heat beside those of another: its values are compared.
    assert again["status"] == "ok" and "turns" not in again["details"]
