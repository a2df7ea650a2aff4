"""Plug-ins that change the process which they run in: no other cell and no path notices."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from checkouts import ROOT

pytestmark = pytest.mark.study

# Whatever a payload can inherit; numpy's and warnings' switches decide whether the runner raises.
CHANGES = """
import os, resource, signal, warnings
import numpy
def change():
    os.environ["LEAK"] = "1"
    os.environ.pop("KEPT", None)
    os.chdir(os.path.dirname(__file__))
    os.umask(0o777)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    warnings.simplefilter("error")
    numpy.seterr(all="raise")
"""
CELL = """
from typing import Annotated, Literal
from transect.domain.cell import Axis, Cell

class ChangingCell(Cell):
    stage: Literal["changing"] = "changing"
    part: Annotated[int, Axis(place=150)] = 0
"""
PLAN = """
from pydantic import Field
from transect.domain.study import Counts, Section
from transect.planning.stage import STAGES, Stage
from transect.stages.changing.cell import ChangingCell
from transect.stages.changing.changes import change

change()

class ChangingSection(Section):
    \"\"\"Cells that say what they inherit.\"\"\"
    parts: Counts = Field(default=[], description="which cells")

@STAGES.register("changing")
class Changing(Stage[ChangingCell]):
    runner = "transect.stages.changing.run:ChangingRunner"
    key = "changing"
    section = ChangingSection

    def environment(self, cell):
        return ""

    def cells(self, section, context):
        return [ChangingCell(part=part) for part in section.parts]
"""
RUN = """
import json, os, signal, warnings
import numpy
from transect.engine.job import Result
from transect.engine.stage_helpers import OneProcess
from transect.stages.changing.changes import change

SAYS = '''
import json, os, resource, signal
print(json.dumps({"leak": os.environ.get("LEAK"), "kept": os.environ.get("KEPT"),
    "umask": os.umask(0), "cores": len(os.sched_getaffinity(0)),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "ignores": signal.getsignal(signal.SIGTERM) is signal.SIG_IGN}))
'''

class ChangingRunner(OneProcess):
    def command(self, job):
        own = {"raises": numpy.geterr()["over"], "error": warnings.filters[0][0] == "error",
               "folder": os.getcwd(), "handled": signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN}
        (job.folder / "own.json").write_text(json.dumps(own))
        return [job.python, "-c", SAYS]

    def inputs(self, job):
        return []

    def collect(self, job, outcome):
        change()
        return Result(details={"payload": json.loads(job.log.read_text())})
"""


def test_what_a_plug_in_changes_stays_with_its_cell(tmp_path):
    stage = tmp_path / "plugins" / "changing"
    stage.mkdir(parents=True)
    for name, text in {"changes": CHANGES, "cell": CELL, "stage": PLAN, "run": RUN}.items():
        (stage / f"{name}.py").write_text(text)
    (tmp_path / "study.yaml").write_text("name: changing\nplugins: [plugins]\nchanging: {parts: [1, 2, 3]}\n")
    command = ["run", "study.yaml", "changing", "--results", "results"]
    done = subprocess.run(
        [sys.executable, "-m", "transect", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "KEPT": "1"},
        umask=0o022,
    )
    assert done.returncode == 0, done.stderr
    assert "changed KEPT, LEAK, the working folder, the umask" in done.stderr
    records = [json.loads(path.read_text()) for path in tmp_path.glob("results/changing/changing/*/record.json")]
    assert [record["status"] for record in records] == ["ok"] * 3, done.stderr
    said = [record["details"]["payload"] for record in records]
    inherited = subprocess.check_output(
        [
            sys.executable,
            "-c",
            "import os, resource; print(len(os.sched_getaffinity(0)),resource.getrlimit(resource.RLIMIT_NOFILE)[0])",
        ],
        text=True,
    ).split()
    for one in said:
        assert (one["leak"], one["kept"], one["umask"]) == (None, "1", 0o022)
        assert [str(one["cores"]), str(one["files"])] == inherited
        assert not one["ignores"]
    for path in tmp_path.glob("results/changing/changing/*/own.json"):
        own = json.loads(path.read_text())
        assert own == {"raises": "warn", "error": False, "folder": str(tmp_path), "handled": True}
    assert (tmp_path / "results" / "changing" / "plan.json").stat().st_mode & 0o777 == 0o644
    assert not (stage / "results").exists()
