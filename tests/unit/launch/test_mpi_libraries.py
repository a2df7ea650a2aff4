"""MPI libraries as an axis: which cells there are, what starts them, which library ran, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cell_jobs import make_job
from checkouts import environment_python
from factories import bench_cell, plan_study, train_cell
from transect.domain.errors import Unsupported
from transect.domain.mpi_libraries import MPI_LIBRARIES, contradiction, library_name
from transect.domain.paths import PYTHONPATH
from transect.domain.record import Cause, Status
from transect.engine.stage_helpers import ranks
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.launch import LAUNCHERS, Request, rank
from transect.launch.launchers import mpiexec as mpiexec_module
from transect.launch.processes import Outcome, run
from transect.planning.plan import StudyPlan
from transect.planning.stage import STAGES
from transect.stages.bench.run import BenchRunner
from transect.stages.train import run as train_run
from transect.training.strategies import STRATEGIES
from transect.training.support import reason_to_skip
from transect.training.workloads import Parameters

OTHERS = [name for name, library in MPI_LIBRARIES.items() if library.environment]
VERSIONS = {
    "openmpi": "Open MPI v5.0.11, package: Open MPI\x00",
    "mpich": "MPICH Version:      5.0.2\nMPICH Release date: Fri Sep 25",
    "intel": "Intel(R) MPI Library 2021.18.1 for Linux* OS\n",
}
STUDY = """
name: small
train:
  repeats: 3
  grids:
    - {workloads: [digits-mlp], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2], options: OPTIONS}
bench:
  repeats: 3
  grids:
    - {benchmarks: [message-sweep], ranks: [2], options: OPTIONS}
forecast: {grids: [{}]}
questions: [{ask: which, answered_by: [messages.library, twin.mpi]}]
"""


def planned(folder: Path, options: str = "[{mpi: [openmpi, mpich, intel]}]") -> StudyPlan:
    return plan_study(folder, STUDY.replace("OPTIONS", options))


def by_mpi(plan: StudyPlan, stage: str) -> dict[str, Any]:
    """Return what the grid asks for, and not the sweeps of predictions, by its library."""
    cells = [one for one in plan.stage(stage).values() if len(one.cell.get("options")) < 2]
    return {dict(one.cell.get("options")).get("mpi", "own"): one for one in cells}


# planning


@pytest.mark.parametrize("stage", ["train", "bench"])
def test_each_library_is_a_cell_that_depends_on_its_wheel_and_takes_turns_with_open_mpi(
    stage: str, tmp_path: Path
) -> None:
    cells = by_mpi(planned(tmp_path), stage)
    assert cells.keys() >= {"openmpi", *OTHERS}
    assert len({cells[name].spec["fingerprint"] for name in MPI_LIBRARIES}) == len(MPI_LIBRARIES)
    assert "other_environments" not in cells["openmpi"].spec
    for name in OTHERS:
        lock = cells[name].spec["other_environments"][MPI_LIBRARIES[name].environment]
        assert lock and cells[name].environments[MPI_LIBRARIES[name].environment] == lock
        (pair,) = cells[name].spec["pairs"]
        assert pair["base"] == cells["openmpi"].cell.without_repeat().id and pair["varies"] == ["options.mpi"]
        assert cells[name].heat == cells["openmpi"].heat


def test_what_the_environment_has_is_no_option_and_a_base_too(tmp_path: Path) -> None:
    cells = by_mpi(planned(tmp_path, "[{mpi: own}, {mpi: mpich}]"), "train")
    assert cells.keys() == {"own", "mpich"} and not cells["own"].cell.options
    assert cells["mpich"].spec["pairs"][0]["base"] == cells["own"].cell.without_repeat().id


@pytest.mark.parametrize(("options", "base"), [("[{mpi: [own, mpich]}]", {"mpi": "own"}), ("[{}, {mpi: mpich}]", {})])
def test_sweeps_have_that_base_too_named_or_not(options: str, base: dict[str, str], tmp_path: Path) -> None:
    plan = planned(tmp_path, options)
    (pair,) = by_mpi(plan, "bench")["mpich"].spec["pairs"]
    assert pair["base"] == bench_cell("message-sweep", base, ranks_per_node=2).id


def test_a_training_is_predicted_from_messages_of_its_own_library(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    for name, one in by_mpi(plan, "forecast").items():
        for role, (stage, cell_id) in one.inputs.items():
            if stage == "bench":
                assert dict(plan.stage(stage)[cell_id].cell.get("options"))["mpi"] == name, role


@pytest.mark.parametrize("name", [n for n in STRATEGIES if STRATEGIES.get(n).rendezvous in ("mpi", "horovod-mpi")])
def test_every_strategy_over_mpi_has_the_axis(name: str) -> None:
    script = name == "mpirun"  # whose MPI is the script's
    assert ("mpi" in STRATEGIES.get(name).options) is not script


# refusals


def skipped(mpi: str, **axes: Any) -> str | None:
    cell = train_cell(**{"strategy": "mpi-allreduce", "ranks_per_node": 2, "options": (("mpi", mpi),)} | axes)
    return reason_to_skip(cell, Parameters(batch=64, epochs=1, learning_rate=0.1, quality_target=0.5))  # type: ignore[arg-type]


@pytest.mark.parametrize("mpi", OTHERS)
def test_what_is_linked_to_one_library_names_both_abis(mpi: str) -> None:
    for axes in ({"framework": "go"}, {"framework": "torch", "strategy": "horovod-mpi"}):
        reason = skipped(mpi, **axes) or ""
        assert "libmpi.so.40" in reason and f"mpi {mpi}" in reason and "libmpi.so.12" in reason
        assert skipped("openmpi", **axes) is None and skipped("own", **axes) is None
    assert skipped(mpi) is None
    assert "container 'podman'" in (skipped(mpi, container="podman") or "")
    sweep = bench_cell("message-sweep", {"mpi": mpi}, ranks_per_node=2, container="podman")
    assert "container 'podman'" in (BENCHMARKS.get("message-sweep").supports(sweep) or "")


def test_imb_of_intels_wheel_does_not_run_with_open_mpi() -> None:
    reason = BENCHMARKS.get("imb").supports(bench_cell("imb", {"mpi": "openmpi"}, ranks_per_node=2)) or ""
    assert "libmpi.so.12" in reason and "libmpi.so.40" in reason


def test_a_library_that_nobody_knows_is_refused_with_those_that_are() -> None:
    cell = bench_cell("message-sweep", {"mpi": "lam"}, ranks_per_node=2)
    assert "one of own, openmpi, mpich, intel, found 'lam'" in (BENCHMARKS.get("message-sweep").supports(cell) or "")


def test_modules_and_images_bring_their_own(tmp_path: Path) -> None:
    facts = {"python": sys.executable, "wrap": ["modules"]}
    job = replace(make_job(tmp_path, train_cell(), system={"mpi_launcher": "srun"}), others={"imb-mpich": facts})
    with pytest.raises(Unsupported, match="mpi mpich is the wheel of environment 'imb-mpich'"):
        ranks(job, ["true"], "mpi", "mpich")


# which library ran


@pytest.mark.parametrize("mpi", MPI_LIBRARIES)
def test_another_library_than_the_cells_is_told(mpi: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ran, version in VERSIONS.items():
        assert (contradiction(mpi, library_name(version)) is None) == (ran == mpi)
        assert contradiction("own", library_name(version)) is None
    assert "no name" in (contradiction(mpi, "") or "")
    # A rank of a training says so in its facts, and the others need not.
    cell = train_cell(strategy="mpi-allreduce", ranks_per_node=2, options=(("mpi", mpi),))
    told = iter([library_name(VERSIONS[mpi]), "LAM 7"])
    monkeypatch.setattr(train_run, "read_rank", lambda *_: ({"libraries": {"mpi": next(told)}}, {}))
    outcome: Any = SimpleNamespace(code=0)
    result = train_run.TrainRunner(STAGES.get("train")).collect(make_job(tmp_path, cell), outcome)
    assert (result.status, result.cause) == (Status.FAILED, Cause.WRONG_RESULT)
    assert result.message == f"the cell has mpi {mpi}, and its ranks ran with LAM 7"


# launching


@pytest.mark.parametrize(("cores", "wish", "binds"), [(4, "", True), (2, "", False), (4, "none", False)])
def test_ranks_of_each_library_have_cores_of_their_own(
    cores: int, wish: str, binds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mpiexec").write_text("")
    monkeypatch.setenv("TRANSECT_BIND", wish)
    request = Request(command=["a"], ranks_per_node=2, threads=2, cores=cores, rendezvous="mpi", bin=tmp_path)
    for open_mpi in (True, False):
        monkeypatch.setattr(mpiexec_module, "_is_open_mpi", lambda _, answer=open_mpi: answer)
        ((argv, _),) = LAUNCHERS.get("mpiexec").processes(request)
        # Open MPI's mpiexec binds, of the others rank.py does.
        assert (("core" in argv) if open_mpi else (rank.__file__ in argv)) is binds


@pytest.mark.env
@pytest.mark.parametrize(("mpi", "runs"), [*zip(OTHERS, OTHERS, strict=True), ("mpich", "intel")])
def test_one_mpi4py_runs_with_each_and_with_another_it_is_no_result(mpi: str, runs: str, tmp_path: Path) -> None:
    python = environment_python("base", tmp_path)
    cell = bench_cell("message-sweep", {"mpi": mpi, "max_size": 64, "seconds": 1}, ranks_per_node=2)
    system = {"mpi_launcher": "mpiexec", "launcher": "plain", "cores_per_node": 2}
    facts = {"python": environment_python(MPI_LIBRARIES[runs].environment, tmp_path)}
    job = replace(
        make_job(tmp_path, cell, system=system),
        python=python,
        bin=Path(python).parent,
        others={MPI_LIBRARIES[mpi].environment: facts},
    )
    runner = BenchRunner(STAGES.get("bench"))
    launcher, request = runner.prepare(job)
    assert launcher == "mpiexec" and request.bin == Path(facts["python"]).parent
    request = replace(request, variables=request.variables | {"PYTHONPATH": PYTHONPATH})
    outcome: Outcome = run(LAUNCHERS.get(launcher).processes(request), log=job.log, cwd=job.folder, seconds=60)
    result = runner.collect(job, outcome)
    if mpi == runs:
        assert result.status is Status.OK, job.log.read_text()
        (found,) = result.details["runs"]
        assert MPI_LIBRARIES[mpi].says in found["parameters"]["library"] and found["parameters"]["ranks"] == 2
    else:
        assert (result.status, result.cause) == (Status.FAILED, Cause.WRONG_RESULT)
        assert "the cell has mpi mpich, and its ranks ran with Intel(R) MPI" in result.message
