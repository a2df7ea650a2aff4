"""The stages of one training by hand: data, reference and ranks, each as the pipeline starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from checkouts import ROOT
from payload_calls import payload_module
from transect.launch.launchers.mpiexec import mpiexec_prefix
from warm import run_command


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Return what an npz file holds."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


# What the pipeline does with the files of ranks.
_MERGE = """
import json, sys
from pathlib import Path
from transect.domain.cell import Cell
from transect.domain.paths import StudyPaths
from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.launch.processes import Outcome

results, reference, out = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
spec = json.loads((out / "spec.json").read_text())
cell = Cell.of(**spec["cell"])
paths = StudyPaths(results=results, study="s")
spec |= {"system": {"cores_per_node": 8}, "inputs": {"data": ["dataset", "d"], "reference": ["reference", "r"]}}
for source, stage, name in ((reference, "reference", "r"), (out, "train", cell.id)):
    folder = paths.cell(stage, name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(source)
details = json.loads((paths.cell("reference", "r") / "result.json").read_text())["details"]
(paths.cell("reference", "r") / "record.json").write_text(json.dumps({"details": details}))
job = Job(spec=spec, cell=cell, paths=paths, python="", bin=None, environment={})
result = RUNNERS.get("train").collect(job, Outcome(end="exited", code=0, seconds=1.0, peak_bytes=0))
print(json.dumps({
    "status": result.status, "cause": result.cause, "message": result.message, "details": result.details,
    "metrics": {metric.name: metric.value for metric in result.metrics},
    "samples": sorted(result.samples),
}))
"""


@dataclass(kw_only=True)
class Training:
    """One workload in one folder; `plugins` is the source of a plug-in file, `rule` its parameters."""

    python: str
    folder: Path
    workload: str = "iris-mlp-ce"
    plugins: str = ""
    rule: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defaults = {"batch": 10, "epochs": 2, "learning_rate": 0.1, "quality_target": 0.5}
        self.rule = defaults | {"test_fraction": 0.25, "dataset_options": {}} | self.rule
        (self.folder / "plugins").mkdir(parents=True)
        (self.folder / "plugins" / "own.py").write_text(self.plugins)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a payload."""
        return os.environ | {
            "PYTHONPATH": str(ROOT / "src"),
            "OMP_NUM_THREADS": "1",
            "TRANSECT_PLUGINS": str(self.folder / "plugins"),
            "TRANSECT_STARTED_AT": str(time.time()),
        }

    def run(self, command: Iterable[object], where: Path) -> subprocess.CompletedProcess[str]:
        """Run to the end; stdout holds both streams. Without mpiexec it has its libraries already."""
        return run_command(command, env=self.environment, cwd=where, merge=True)

    def prepare(self, repeats: int = 1) -> dict[str, Any]:
        """Run the data stage into `data`; return its result."""
        used = ("batch", "epochs", "test_fraction", "dataset_options")
        spec = {
            "workload": self.workload,
            "seed": 1,
            "repeats": repeats,
            "parameters": {name: self.rule[name] for name in used},
        }
        out = self.folder / "data"
        out.mkdir(exist_ok=True)
        (out / "spec.json").write_text(json.dumps(spec))
        run = self.run([self.python, *payload_module("dataset", out)], out)
        assert run.returncode == 0, run.stdout
        return dict(json.loads((out / "result.json").read_text()))

    def reference(self, precisions: Iterable[str] = ("fp32",), **axes: Any) -> Path:
        """Run the reference stage; return its folder, which holds result.json."""
        cell = {"stage": "reference", "framework": "numpy", "strategy": "single", "precision": "fp64", **axes}
        return self._stage(cell, precisions=list(precisions))

    def train(self, ranks: int = 1, expect: int = 0, reference: Path | None = None, **axes: Any) -> tuple[Path, str]:
        """Run the ranks of a cell, by mpiexec where there is more than one; return folder and log.

        With a reference's folder they are restarted from its states.
        """
        cell = {"stage": "train", "framework": "numpy", "strategy": "single", "ranks_per_node": ranks, **axes}
        start: list[str] = []
        if ranks > 1:
            program = str(Path(self.python).parent / "mpiexec")
            start = [*mpiexec_prefix(program), "-n", str(ranks), "--map-by", ":OVERSUBSCRIBE"]
        out = self._stage(cell, start, expect, reference)
        return out, (out / "log").read_text()

    def merge(self, out: Path, reference: Path) -> dict[str, Any]:
        """Return the result of the training in `out`, once for each; a reference serves many."""
        results = self.folder / f"results-{out.name}"
        run = self.run([sys.executable, "-c", _MERGE, results, reference, out], self.folder)
        assert run.returncode == 0, run.stdout
        return dict(json.loads(run.stdout.splitlines()[-1]))

    def _stage(
        self,
        axes: dict[str, Any],
        start: Iterable[str] = (),
        expect: int = 0,
        reference: Path | None = None,
        **more: Any,
    ) -> Path:
        cell = {"workload": self.workload, "batch": self.rule["batch"], **axes}
        out = self.folder / f"{cell['stage']}-{len(list(self.folder.iterdir()))}"
        out.mkdir()
        spec = {"cell": cell, "parameters": self.rule, **more}
        (out / "spec.json").write_text(json.dumps(spec))
        given = payload_module(cell["stage"], out, data=self.folder / "data", reference=reference)
        run = self.run([*start, self.python, *given], out)
        (out / "log").write_text(run.stdout)
        assert run.returncode == expect, run.stdout
        return out
