"""docs/your-model.md as it stands: its files, and its commands in their order."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from checkouts import ROOT, Place

pytestmark = [pytest.mark.study, pytest.mark.timeout(3600)]

PAGE = (ROOT / "docs" / "your-model.md").read_text()
FILES = dict(re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
RUNS = [block.split("\n") for block in re.findall(r"<!-- run -->\n((?:    .*\n)+)", PAGE)]


def test_from_a_module_to_a_decision(place: Place) -> None:
    for name, text in FILES.items():
        (place.folder / name).write_text(text)
    commands = [line.split() for block in RUNS for line in block if line]
    assert [command[:2] for command in commands] == [
        ["python", "make_data.py"],
        ["transect", "train"],
        ["transect", "check"],
        ["make", "report"],
    ]
    made, trained, checked, reported = commands
    subprocess.run([sys.executable, *made[1:]], cwd=place.folder, check=True)
    done = place.transect(*trained[1:], "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    ended = json.loads(done.stdout)
    assert len(ended["records"]) == 21 and {record["status"] for record in ended["records"]} == {"ok"}
    assert (place.folder / ended["report"]).stat().st_size > 100_000
    summary = json.loads((place.folder / "results/own-net/summary.json").read_text())
    assert {decision["question"] for decision in summary["decisions"]} >= {"train", "serve-one"}
    check = place.transect(*checked[1:])
    assert check.returncode == 0 and "0 of them would be skipped" in check.stdout
    report = place.make(reported[-1].removeprefix("STUDY="))
    assert report.returncode == 0, report.stdout + report.stderr
    records = place.records("mine")
    assert [record["message"] for record in records.values() if record["status"] != "ok"] == []
    trained = {(r["cell"]["framework"], r["cell"]["precision"]) for r in records.values() if r["stage"] == "train"}
    assert trained == {("torch", "fp32"), ("torch", "amp-bf16"), ("torchax", "fp32")}
    losses = {r["cell"]["runtime"]: losses_of(place, name) for name, r in records.items() if r["stage"] == "retrain"}
    assert losses.keys() == {"python", "javascript"}
    np.testing.assert_allclose(losses["javascript"], losses["python"], rtol=1e-5)
    assert len(losses["python"]) == 150 and losses["python"][-1] < losses["python"][0] / 2


def losses_of(place: Place, name: str) -> np.ndarray:
    """Return the loss of each step of a retraining, (steps,)."""
    with np.load(place.folder / "results" / "mine" / name / "samples.npz") as file:
        return file["loss"]
