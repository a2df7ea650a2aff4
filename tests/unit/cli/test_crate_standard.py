"""The RO-Crate of a study, read by rocrate and held to its profile by roc-validator."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from checkouts import environment_python
from factories import bare_record, train_cell, write_records
from transect.cli.crate import write_crate
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, Status
from transect.report.engine.crate import METADATA

pytestmark = pytest.mark.env

PROFILE = "workflow-run-crate-0.5"
PROGRAM = Path(__file__).parents[2] / "support" / "ro_crate_standard.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment_python("ro-crate", tmp_path_factory.mktemp("environment"))


def judged(python: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run([python, str(PROGRAM), str(folder), PROFILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    verdict: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return verdict


def test_a_crate_passes_what_its_profile_requires(python: str, tmp_path: Path) -> None:
    paths = StudyPaths(results=tmp_path, study="small")
    failed = {"status": Status.FAILED, "cause": Cause.CRASH, "message": "<b> & [x]"}
    for workload, how in (("iris-mlp", {}), ("digits-cnn", failed)):
        write_records(paths.folder, bare_record(train_cell(workload=workload), study="small", **how))
    (paths.folder / "a name, 100% \u00e9.txt").write_text("1")
    file, _ = write_crate(paths)
    verdict = judged(python, paths.folder)
    assert verdict["issues"] == [] and verdict["checks"] > 50
    crate = json.loads(file.read_text())
    assert (verdict["main"], verdict["entities"]) == ("workflow/Snakefile", len(crate["@graph"]))

    # The validator notices what is missing.
    for entity in crate["@graph"]:
        entity.pop("instrument", None)
    (paths.folder / METADATA).write_text(json.dumps(crate))
    assert judged(python, paths.folder)["issues"]
