"""One IMB-MPI1 under the MPIs of two wheels, and under a launcher that is not theirs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from checkouts import environment_python
from factories import bench_cell
from transect.hpc.base import Run
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.ingest import ingest
from transect.launch.launchers.mpiexec import find_mpiexec, mpiexec_prefix

pytestmark = pytest.mark.env
ENVIRONMENTS = {"intel": "imb", "mpich": "imb-mpich"}


def runs(mpi: str, folder: Path, launcher: str = "") -> list[Run]:
    """Run it on two ranks, by the mpiexec of its environment or of another one."""
    benchmark = BENCHMARKS.get("imb")
    cell = bench_cell("imb", benchmark.smoke | {"mpi": mpi, "max_bytes": 64}, ranks_per_node=2)
    python = environment_python(ENVIRONMENTS[mpi], folder)
    home = environment_python(launcher, folder) if launcher else python
    mpiexec = find_mpiexec(Path(home).parent)
    assert mpiexec is not None and Path(mpiexec).parent == Path(home).parent
    command = benchmark.command(cell, folder, python, mpiexec_prefix(mpiexec))
    if launcher:  # Open MPI calls its hosts otherwise
        command = [*(word for word in command if word not in ("-hosts", "localhost"))]
        command.insert(1, "--oversubscribe")
    with (folder / "output.log").open("wb") as log:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI"))}
        subprocess.run(command, stdout=log, stderr=log, cwd=folder, timeout=120, env=environment)
    return ingest([folder / "output.log"], "imb")


@pytest.mark.parametrize("mpi", ENVIRONMENTS)
def test_one_program_runs_under_both(mpi: str, tmp_path: Path) -> None:
    (run,) = runs(mpi, tmp_path)
    assert (run.status, run.reason) == ("ok", "")
    assert run.parameters["test"] == "Allreduce" and run.parameters["processes"] == 2
    assert BENCHMARKS.get("imb").contradicts(bench_cell("imb", {"mpi": mpi}, ranks_per_node=2), run) is None
    assert any(metric.normalised and metric.normalised.name == "collective_time" for metric in run.metrics)


def test_ranks_of_another_mpis_launcher_give_no_result(tmp_path: Path) -> None:
    cell = bench_cell("imb", {"mpi": "mpich"}, ranks_per_node=2)
    found = runs("mpich", tmp_path, launcher="base")
    assert found and all(run.status != "ok" or BENCHMARKS.get("imb").contradicts(cell, run) for run in found)
