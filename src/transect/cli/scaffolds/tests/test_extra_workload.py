"""The workload wine-mlp, trained by numpy until it reaches its target.

Run it with pytest, by a Python that has transect. An environment that is missing is built first.
"""

import json
from pathlib import Path

from transect.cli.check_plugin import know_plugins
from transect.cli.plugin_checks import answers
from transect.cli.study import plan_of, run_cells
from transect.training.workloads import WORKLOADS

know_plugins(None, Path(__file__).resolve().parents[1])

STUDY = """
name: one
train: {repeats: 1, grids: [{workloads: [wine-mlp], frameworks: [numpy], strategies: [single]}]}
"""


def test_it_answers_as_its_kind_must():
    assert [check for check in answers("workload", "wine-mlp") if not check.holds] == []


def test_it_reaches_its_target(tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text(STUDY)
    plan = plan_of(str(file), "laptop", tmp_path / "results")
    run_cells(plan, [planned for planned in plan if planned.cell.stage == "train"], force=False)
    (path,) = (tmp_path / "results/one/train").glob("*/record.json")
    record = json.loads(path.read_text())
    assert record["status"] == "ok", record["message"]
    reached = {metric["name"]: metric["value"] for metric in record["metrics"]}
    assert reached["accuracy"] >= WORKLOADS.get("wine-mlp").defaults.quality_target
