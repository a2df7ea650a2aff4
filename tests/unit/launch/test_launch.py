"""Launchers' argument lists."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.domain.axes.bench import BenchCell
from transect.domain.errors import BadInput, MissingDependency
from transect.launch import LAUNCHERS, Request, rank, rendezvous, slurm, wrapping
from transect.launch.launchers import mpiexec as mpiexec_module
from transect.launch.slurm import cores_per_node, expand_hosts
from transect.launch.supervise import _reported
from transect.planning.stage import STAGES
from transect.stages.bench import run as bench

STEP = ["--mem=0", "--overlap", "--export=ALL", "--input=none", "--quit-on-interrupt"]
NUMBERS = [word for name, template in rendezvous.NUMBERS.items() for word in ("--set", f"{name}={template}")]


def shim(numbered_by: str, ranks_per_node: int) -> list[str]:
    return [sys.executable, rank.__file__, "--numbered-by", numbered_by, "--ranks-per-node", str(ranks_per_node)]


@pytest.fixture
def job(monkeypatch):
    """Variables as in a batch script on four nodes of which this is none."""
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3,7]")
    monkeypatch.delenv("TRANSECT_BIND", raising=False)


def started(launcher: str, **fields: object) -> tuple[list[str], dict[str, str]]:
    request = Request(command=["python", "a b.py"], **fields)
    assert LAUNCHERS.get(launcher).supports(request) is None
    return LAUNCHERS.get(launcher).processes(request)[0]


def test_srun_for_torch(job):
    argv, variables = started(
        "srun",
        nodes=2,
        ranks_per_node=4,
        threads=3,
        cores=12,
        rendezvous="tcp",
        interface="ib0",
        label=True,
        bind=True,
        name="mine",
        variables={"A": "1"},
        network_variables={"UCX_NET_DEVICES": "mlx5_0:1"},
    )
    step = (
        "--ntasks=8 --ntasks-per-node=4 --distribution=block --cpus-per-task=3 --kill-on-bad-exit=1 --wait=0 --mpi=none"
    )
    ranks = [*shim("slurm", 4), *NUMBERS, *["--bind", "auto", "--threads", "3", "--label", "--"], "python", "a b.py"]
    assert argv == ["srun", "--nodes=2", *STEP, "--nodelist=n1,n2", *step.split(), "--job-name=mine", *ranks]
    assert variables["MASTER_ADDR"] == "n1" and 20000 <= int(variables["MASTER_PORT"]) < 30000
    assert variables["GLOO_SOCKET_IFNAME"] == "ib0" and variables["OMP_NUM_THREADS"] == "3"
    assert variables["UCX_NET_DEVICES"] == "mlx5_0:1" and variables["A"] == "1"
    assert "SLURM_PMIX_FENCE" not in variables


def test_srun_for_mpi_on_shared_cores(job, monkeypatch):
    argv, variables = started(
        "srun",
        nodes=4,
        ranks_per_node=3,
        threads=2,
        cores=4,
        rendezvous="mpi",
        mpi_type="pmix_v4",
        memory_mb_per_node=2000,
    )
    step = "--ntasks=12 --ntasks-per-node=3 --distribution=block --cpus-per-task=4 --kill-on-bad-exit=1 --wait=0"
    more = ["--mpi=pmix_v4", "--overcommit", "python", "a b.py"]
    assert argv == ["srun", "--nodes=4", "--mem=2000", *STEP[1:], *step.split(), *more]
    assert variables["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert variables["OMPI_MCA_hwloc_base_binding_policy"] == "none"
    assert variables["SLURM_PMIX_FENCE"] == "ring"
    assert "MASTER_ADDR" not in variables
    # Fences that a site has chosen stay.
    monkeypatch.setenv("SLURM_PMIX_FENCE", "tree")
    assert "SLURM_PMIX_FENCE" not in started("srun", nodes=2, rendezvous="mpi")[1]


def test_srun_places_three_ranks_on_two_nodes(job):
    argv, _ = started("srun", nodes=2, ranks_per_node=2, counts=(2, 1), cores=2, rendezvous="tcp", label=True)
    place = argv.index("--ntasks=3")
    assert argv[place + 1 : place + 3] == ["--distribution=arbitrary", "--nodelist=n1,n1,n2"]
    assert "--ntasks-per-node=2" not in argv
    assert argv[argv.index("--ranks-per-node") + 1] == "2,1"


def test_srun_with_gpus_in_a_container(job):
    wrap, _ = wrapping.wrapped("/images/torch.sif", gpus=True, binds=["/data"])
    argv, _ = started(
        "srun", ranks_per_node=2, rendezvous="tcp", gpus_per_rank=2, wrap=wrap, cores=2, python="/usr/bin/python3"
    )
    assert "--gres=gpu:4" in argv and "--nodelist=n1" in argv
    at = argv.index("/usr/bin/python3")
    assert argv[at + 1] == rank.__file__ and argv[-2:] == ["python", "a b.py"]
    container = argv[argv.index("--") + 1 : -2]
    assert container[1:] == ["exec", "--nv", "--bind", "/data", "/images/torch.sif"]
    assert argv[argv.index("--gpus-per-rank") + 1] == "2"


def test_srun_takes_nothing_that_an_outer_step_or_the_job_left(job, monkeypatch):
    monkeypatch.setenv("SLURM_LABELIO", "1")
    monkeypatch.setenv("SLURM_NTASKS_PER_GPU", "1")
    # Of the job's own these are the user's wish.
    monkeypatch.setenv("SLURM_CPU_BIND", "cores")
    monkeypatch.setenv("SLURM_GPUS_PER_TASK", "1")
    plain, _ = started("srun", rendezvous="tcp")
    unset = ["env", "--unset=SLURM_LABELIO", "--unset=SLURM_NTASKS_PER_GPU"]
    assert plain[:5] == [*unset, "srun", "--nodes=1"]
    gpus, _ = started("srun", rendezvous="tcp", gpus_per_rank=1)
    assert gpus[:5] == [*unset, "--unset=SLURM_GPUS_PER_TASK", "srun"]
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    inside, _ = started("srun", rendezvous="tcp")
    assert inside[:5] == [*unset, "--unset=SLURM_CPU_BIND", "srun"]


def test_srun_asks_for_nodes_that_are_there(job):
    with pytest.raises(BadInput, match=r"job 77 .*\(n1,n2,n3,n7\), 5 "):
        started("srun", nodes=5, rendezvous="tcp")


@pytest.mark.env
def test_stripped_variables_are_asked_from_squeue(tmp_path, monkeypatch):
    program = tmp_path / "squeue"
    program.write_text('#!/bin/sh\ncase "$*" in *%N*) echo "n[1-2]";; *) echo "2 8";; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    only_id = {"SLURM_JOB_ID": "5"}
    assert slurm.job_hosts(only_id) == ["n1", "n2"]
    assert cores_per_node(only_id) == 4 and cores_per_node({"SLURM_JOB_CPUS_PER_NODE": "16(x3),8"}) == 8
    program.write_text("#!/bin/sh\necho no such job >&2\nexit 1\n")
    with pytest.raises(MissingDependency, match=r"squeue .*code 1: no such job"):
        slurm.job_hosts(only_id)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("login", ["login"]),
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("a1,b[1-2]c,d", ["a1", "b1c", "b2c", "d"]),
        ("r[1-2]n[1-2].x", ["r1n1.x", "r1n2.x", "r2n1.x", "r2n2.x"]),
    ],
)
def test_node_lists(text, hosts):
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize("text", ["", "n[1-", "n[x]", "a,,b", "n[1-2-3]"])
def test_bad_node_lists(text):
    with pytest.raises(BadInput, match="list of nodes"):
        expand_hosts(text)


def test_plain_ranks_are_told_by_their_launcher():
    request = Request(command=["x"], ranks_per_node=2, cores=2, rendezvous="tf-config", label=True)
    (first, rank_0), (second, rank_1) = LAUNCHERS.get("plain").processes(request)
    assert first == second == [*shim("given", 2), "--label", "--", "x"]
    assert rank_0["TF_CONFIG"].endswith('"index": 0}}') and rank_1["TF_CONFIG"].endswith('"index": 1}}')
    assert (rank_0["RANK"], rank_1["RANK"]) == ("0", "1")


def test_plain_without_wishes_is_the_command_itself():
    request = Request(command=["x"], wrap=["w"], rendezvous="tcp")
    assert LAUNCHERS.get("plain").processes(request)[0][0] == ["w", "x"]
    mpi = replace(request, rendezvous="mpi", ranks_per_node=2)
    assert "mpiexec or srun" in str(LAUNCHERS.get("plain").supports(mpi))


@pytest.mark.parametrize(
    ("cores", "bind", "expected"),
    [
        (4, "", ["--bind-to", "core", "--map-by", "slot:PE=2"]),
        (2, "", ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]),
        (4, "none", ["--bind-to", "none"]),
    ],
)
def test_mpiexec(monkeypatch, tmp_path, cores, bind, expected):
    (tmp_path / "mpiexec").write_text("")
    monkeypatch.setattr(mpiexec_module, "_is_open_mpi", lambda _: True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("TRANSECT_BIND", bind)
    argv, _ = started("mpiexec", ranks_per_node=2, threads=2, cores=cores, rendezvous="mpi", bin=tmp_path)
    program = str(tmp_path / "mpiexec")
    assert argv == [program, "-n", "2", *expected, "python", "a b.py"]
    argv, variables = started(
        "mpiexec", ranks_per_node=2, threads=2, cores=cores, rendezvous="tcp", bin=tmp_path, bind=True
    )
    # rank.py binds these: ranks that they spawn would inherit what mpiexec binds by.
    free = ["--bind-to", "none"] if "core" in expected else expected
    ranks = [*shim("mpi", 2), *NUMBERS, *["--bind", "always", "--threads", "2", "--", "python"], "a b.py"]
    assert argv == [program, "-n", "2", *free, *ranks]
    assert variables["MASTER_ADDR"] == "127.0.0.1" and "HYDRA_LAUNCHER" not in variables
    # Inside a scheduler's job too its ranks start here.
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert started("mpiexec", rendezvous="mpi", bin=tmp_path)[1]["HYDRA_LAUNCHER"] == "fork"


def test_open_mpi_of_an_environment_looks_for_no_fast_network_where_there_is_none(monkeypatch, tmp_path):
    (tmp_path / "mpiexec").write_text("")
    adapters = tmp_path / "adapters"
    monkeypatch.setattr(mpiexec_module, "_is_open_mpi", lambda _: True)
    monkeypatch.setattr(mpiexec_module, "_ADAPTERS", (str(adapters),))

    def parts():
        variables = started("mpiexec", rendezvous="mpi", bin=tmp_path)[1]
        return {name: value for name, value in variables.items() if name in ("OMPI_MCA_btl", "OMPI_MCA_mtl")}

    assert parts() == {"OMPI_MCA_btl": "^ofi", "OMPI_MCA_mtl": "^ofi"}
    # What somebody has chosen stays, in the user's own file too.
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi/mca-params.conf").write_text("btl = self,tcp\n")
    assert parts() == {}
    (tmp_path / ".openmpi/mca-params.conf").unlink()
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    assert parts() == {"OMPI_MCA_mtl": "^ofi"}
    adapters.mkdir()
    assert parts() == {}


def test_modules_are_loaded_by_a_constant_script():
    wrap, variables = wrapping.modules(["gcc/13.2", "cuda/12.4"])
    assert wrap[:2] == ["bash", "-lc"] and "gcc" not in " ".join(wrap)
    assert variables == {"TRANSECT_MODULES": "gcc/13.2 cuda/12.4"}
    assert wrapping.modules([]) == ([], {})
    for bad in ("a b", "$(x)", "-f", "*"):
        with pytest.raises(BadInput, match="expected a name"):
            wrapping.modules([bad])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[3] transect: rank 3 on n2 exited with code 5", 5),
        ("[3] transect: rank 3 on n2 was ended by signal 9 (SIGKILL)", 137),
        ("srun: error: n2: task 1: Exited with exit code 3", 3),
        ("srun: error: n2: tasks 1,3-4: Killed", 137),
        ("srun: error: n2: task 1: Segmentation fault (core dumped)", 139),
        ("srun: error: something else", 0),
        ("text of a program", 0),
    ],
)
def test_reports_of_ranks_are_understood(line, code):
    assert _reported(line + "\n") == code


@pytest.mark.parametrize(("nodes", "here"), [(1, True), (2, False)])
def test_a_benchmarks_own_mpiexec_starts_ranks_where_the_cell_is(job, monkeypatch, nodes, here):
    benchmark = SimpleNamespace(by_launcher=lambda _: False, programs=lambda _: (), command=lambda *_: ["hpcc"])
    monkeypatch.setattr(bench, "BENCHMARKS", {"mine": benchmark})
    monkeypatch.setattr(bench, "find_mpiexec", lambda _: None)
    cell = BenchCell(benchmark="mine", nodes=nodes)
    asked = SimpleNamespace(cell=cell, bin=None, python="python", folder=Path(), wrap=lambda: ([], {"A": "1"}))
    _, request = bench.BenchRunner(STAGES.get("bench")).prepare(asked)
    assert request.variables.pop("A") == "1"
    assert bool(request.variables) is here
    if here:
        assert request.variables["PRTE_MCA_ras"].startswith("^slurm,")
