"""A training cell of a trainer in another language, as the driver runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rank_runs import Training

__all__ = ["program_cell"]

# The stage's own two halves around the process, as the driver calls them.
CELL = """
import json, os, subprocess, sys
from pathlib import Path
from transect.domain.cell import Cell
from transect.domain.errors import Unsupported
from transect.domain.paths import StudyPaths
from transect.domain.record import Record, write_record
from transect.execution.job import Job
from transect.execution.stage import RUNNERS
from transect.launch import LAUNCHERS
from transect.launch.processes import Outcome

root, reference, spec = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
programs = Path(spec.pop("programs")) if "programs" in spec else None
paths = StudyPaths(results=root / "results", study="s")
cell = Cell.of(**spec["cell"])
for stage, source in (("data", root / "data"), ("reference", reference)):
    folder = paths.cell(stage, source.name)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(source)
    result = json.loads((source / "result.json").read_text())
    write_record(folder / "record.json", Record(
        study="s", stage=stage, cell=Cell.of(stage=stage + "-of-old"), cell_id=source.name, status="ok",
        fingerprint="f", started="", ended="", details=result["details"],
    ))
spec |= {
    "system": {"cores_per_node": len(os.sched_getaffinity(0)), "launcher": "plain", "mpi_launcher": "mpiexec"},
    "inputs": {"data": ["data", "data"], "reference": ["reference", reference.name]},
    "cell_limits": {"memory_mb": None},
}
job = Job(spec=spec, cell=cell, paths=paths, python=sys.executable, bin=programs, environment={})
job.folder.mkdir(parents=True, exist_ok=True)
stage = RUNNERS.get("train")
try:
    launcher, request = stage.prepare(job)
except Unsupported as error:
    print(json.dumps({"status": "skipped", "message": str(error)}))
    sys.exit()
# One rank needs no launcher; several are those of one mpiexec.
argv, variables = request.command, {}
if cell.ranks > 1:
    ((argv, variables),) = LAUNCHERS.get(launcher).processes(request)
with job.log.open("wb") as log:
    code = subprocess.run(
        argv, env=os.environ | variables, cwd=job.folder, stdout=log, stderr=subprocess.STDOUT
    ).returncode
for damage in sys.argv[4:]:
    exec(damage)
result = stage.collect(job, Outcome(end="exited", code=code, seconds=1.0, peak_bytes=0))
print(json.dumps({
    "status": result.status, "cause": result.cause, "message": result.message, "details": result.details,
    "metrics": {metric.name: metric.value for metric in result.metrics}, "libraries": result.libraries,
    "folder": str(job.folder), "files": sorted(path.name for path in job.folder.iterdir()),
}))
"""


def program_cell(
    training: Training, reference: Path, *damage: str, rule: dict[str, Any] | None = None,
    programs: Path | None = None, prefix: tuple[str, ...] = (), **axes: Any,
) -> dict[str, Any]:  # fmt: skip
    """Run one cell and return what becomes of it.

    `damage` are lines of Python that run before the ranks' files are read, `programs` is the folder of
    the environment's programs, `prefix` what the cell is started behind.
    """
    cell = {"stage": "train", "workload": training.workload, **axes}
    spec = {"cell": cell, "parameters": training.rule | (rule or {})}
    if programs is not None:
        spec["programs"] = str(programs)
    command = [*prefix, sys.executable, "-c", CELL, training.folder, reference, json.dumps(spec)]
    run = training.run([*command, *damage], training.folder)
    assert run.returncode == 0, run.stdout
    return dict(json.loads(run.stdout.splitlines()[-1]))
