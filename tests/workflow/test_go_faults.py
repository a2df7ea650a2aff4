"""A rank in Go that ends badly is a record with its cause, the others end with it, and nothing is left."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

PLUGIN = '''
"""Ranks in Go that end badly, by their names."""

from transect.training.frameworks import FRAMEWORKS
from transect.training.frameworks.go_ import GoFramework


class Faulty(GoFramework):
    def command(self, files):
        return ["{program}", str(files.plan)]


for name in {names}:
    FRAMEWORKS.register(name)(type("Faulty", (Faulty,), {{"__doc__": name}}))
'''
STUDY = """
name: ends
plugins: [plugins-of-go]
limits: {{seconds: {seconds}, memory_mb: {memory}, repeats_if_disturbed: 0}}
workloads: {{iris-mlp: {{reference_steps: 0}}}}
train:
  repeats: 1
  grids:
    - {{workloads: [iris-mlp], frameworks: [{frameworks}], strategies: [mpi-allreduce], ranks: [2]}}
"""
# Cause, and what the message says.
ENDS = {
    "go-panics": ("crash", ["rank 1", "index out of range [4]", "main.(*faulty).fail"]),
    "go-panics-beside": ("crash", ["rank 1", "panic", "main.(*faulty).fail.func1()"]),
    "go-killed": ("killed", ["rank 1", "SIGKILL"]),
    "go-out-of-addresses": ("out-of-memory", ["out of memory"]),
}
# The limits of a cell end these.
HANGS = {"go-hangs": ("timeout", ["60 s"])}
FILLS = {"go-fills": ("out-of-memory", ["ranks", "1500 MB"])}


@pytest.fixture
def faulty(place, go_programs, tmp_path):
    """A folder with the plug-in; its program is the trainer's with another main."""
    program, module = tmp_path / "go-faults", ROOT / "src" / "trainers" / "go"
    overlay = tmp_path / "overlay.json"
    source = ROOT / "tests" / "data" / "trainers" / "go_faults.go"
    overlay.write_text(json.dumps({"Replace": {str(module / "cmd/go-faults/main.go"): str(source)}}))
    subprocess.run(
        ["go", "build", "-tags", "mpi", "-overlay", overlay, "-o", program, "./cmd/go-faults"],
        cwd=module,
        check=True,
        env=os.environ
        | {"CC": str(go_programs / "mpicc"), "CGO_ENABLED": "1", "PATH": f"{os.environ['PATH']}:{go_programs}"},
    )
    folder = place.folder / "plugins-of-go"
    folder.mkdir()
    names = [*ENDS, *HANGS, *FILLS]
    (folder / "faulty.py").write_text(PLUGIN.format(program=program, names=names))
    return place


def study(place, frameworks, seconds, memory):
    """Return the records by framework; data and reference are the first run's while they took less than the limit."""
    text = STUDY.format(frameworks=", ".join(frameworks), seconds=seconds, memory=memory)
    (place.folder / "ends.yaml").write_text(text)
    run = place.make("ends.yaml", report=False)
    assert run.returncode == 0, run.stderr
    records = place.records("ends", "train").values()
    return {one["cell"]["framework"]: one for one in records}


def test_ranks_in_go_that_end_badly_have_their_cause_and_leave_nothing(faulty):
    found = study(faulty, ENDS, 240, 8000) | study(faulty, HANGS, 60, 8000) | study(faulty, FILLS, 600, 1500)
    expected = ENDS | HANGS | FILLS
    assert {name: (one["status"], one["cause"]) for name, one in found.items()} == {
        name: ("failed", cause) for name, (cause, _) in expected.items()
    }, {name: one["message"] for name, one in found.items()}
    for name, (_, said) in expected.items():
        assert all(part in found[name]["message"] for part in said), found[name]["message"]
    assert "waits for what nobody ever sends" in found["go-hangs"]["log_tail"]
    assert faulty.payloads() == []
