"""What has to be installed before a cell's ranks run."""

from __future__ import annotations

from dataclasses import asdict

from transect.domain.axes.train import TrainCell
from transect.engine.job import Job, cell_of
from transect.measure.footprint import footprint
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles


def what_is_installed(job: Job) -> dict[str, dict[str, int]]:
    """Return `bytes` and `files` of each part; nothing where they are not known, as of loaded modules.

    A program of its own needs no more than its framework names, `program`; all others their whole `environment`
    and the `interpreter` that it borrows from the machine, which the environment's stamp tells.
    """
    cell = cell_of(job, TrainCell)
    files = RankFiles(plan=job.folder, out=job.folder, programs=job.bin, cell=cell)
    framework = FRAMEWORKS.get(cell.framework)
    if isinstance(framework, ProgramFramework) and job.bin is not None:
        named = framework.installed(files)
        if named is not None:
            return {"program": asdict(footprint(named))}
    told: dict[str, dict[str, int]] = job.environment.get("installed", {})
    return told
