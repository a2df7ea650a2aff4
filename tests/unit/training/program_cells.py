"""A training cell of a trainer in another language, as the driver runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rank_runs import Training

# The stage's own two halves around the process, as the driver calls them.
CELL = """
import json, os, subprocess, sys
from pathlib import Path
from transect.domain.cell import Cell
from transect.domain.errors import Unsupported
from transect.domain.paths import StudyPaths
from transect.domain.record import Record, write_record
from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.launch import LAUNCHERS
from transect.launch.processes import Outcome

root, spec = Path(sys.argv[1]), json.loads(sys.argv[2])
programs, before, wrap = (spec.pop(name) for name in ("programs", "before", "wrap"))
sources = {stage: Path(source) for stage, source in spec.pop("sources").items()}
paths = StudyPaths(results=root / "results", study="s")
cell = Cell.of(**spec["cell"])
for stage, source in sources.items():
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
    "inputs": {stage: [stage, source.name] for stage, source in sources.items()},
    "cell_limits": {"memory_mb": None},
}
programs = programs and Path(programs)
python = str(programs / "python") if programs else sys.executable
job = Job(spec=spec, cell=cell, paths=paths, python=python, bin=programs, environment={})
job.spec_file.parent.mkdir(parents=True, exist_ok=True)
job.spec_file.write_text(json.dumps(spec))
job.folder.mkdir(parents=True, exist_ok=True)
stage = RUNNERS.get("train")
try:
    launcher, request = stage.prepare(job)
except Unsupported as error:
    print(json.dumps({"status": "skipped", "message": str(error)}))
    sys.exit()
if before:
    exec(before)
# One rank needs no launcher; several are those of one mpiexec.
argv, variables = request.command, {}
if cell.ranks > 1:
    ((argv, variables),) = LAUNCHERS.get(launcher).processes(request)
with job.log.open("wb") as log:
    code = subprocess.run(
        [*wrap, *argv], env=os.environ | variables, cwd=job.folder, stdout=log, stderr=subprocess.STDOUT
    ).returncode
for damage in sys.argv[3:]:
    exec(damage)
result = stage.collect(job, Outcome(end="exited", code=code, seconds=1.0, peak_bytes=0))
print(json.dumps({
    "status": result.status, "cause": result.cause, "message": result.message, "details": result.details,
    "metrics": {metric.name: metric.value for metric in result.metrics}, "libraries": result.libraries,
    "folder": str(job.folder), "files": sorted(path.name for path in job.folder.iterdir()),
}))
"""


def program_cell(
    training: Training,
    reference: Path | None,
    *damage: str,
    rule: dict[str, Any] | None = None,
    programs: Path | None = None,
    before: str = "",
    wrap: tuple[str, ...] = (),
    **axes: Any,
) -> dict[str, Any]:
    """Run one cell and return what becomes of it.

    `before` are lines of Python that run when the plan is written, `damage` such that run before the
    ranks' files are read. `programs` is the folder of the environment's programs, `wrap` what the
    program is started behind.
    """
    cell = {"stage": "train", "workload": training.workload, **axes}
    sources = {"data": training.folder / "data"}
    if reference is not None:
        sources["reference"] = reference
    spec = {
        "cell": cell,
        "parameters": training.rule | (rule or {}),
        "before": before,
        "wrap": wrap,
        "programs": None if programs is None else str(programs),
        "sources": {stage: str(source) for stage, source in sources.items()},
    }
    command = [sys.executable, "-c", CELL, training.folder, json.dumps(spec), *damage]
    run = training.run(command, training.folder)
    assert run.returncode == 0, run.stdout
    return dict(json.loads(run.stdout.splitlines()[-1]))
