"""Whose hosts these are: each scheduler's own words become one allocation."""

from __future__ import annotations

import os
import socket
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest

from transect.cli.launch import launch
from transect.domain.errors import BadInput, MissingDependency
from transect.domain.record import Cause
from transect.engine import payload
from transect.engine.allocation import prepare_allocation
from transect.launch import LAUNCHERS, Request
from transect.launch.hosts import HOSTS, Allocation, allocation, ranks_on
from transect.launch.network import addresses_of
from transect.launch.processes import Outcome


def slurm(nodes: str, **more: str) -> dict[str, str]:
    return {f"SLURM_{name}": value for name, value in {"JOB_ID": "7", "JOB_NODELIST": nodes, **more}.items()}


TWO = Allocation(source="PBS_NODEFILE", hosts=("a", "b"), ranks=(2, 1))


@pytest.mark.parametrize(
    ("environ", "files", "hosts", "ranks"),
    [
        ({HOSTS: "n[1-2],login"}, {}, ("n1", "n2", "login"), (1, 1, 1)),
        ({HOSTS: "a", "SLURM_JOB_ID": "1"}, {}, ("a",), (1,)),
        ({"PBS_NODEFILE": "f"}, {"f": "a.site\na.site\nb.site\n\n"}, ("a.site", "b.site"), (2, 1)),
        ({"LSB_DJOB_HOSTFILE": "f", "LSB_HOSTS": "x"}, {"f": "a\nb\na\n"}, ("a", "b"), (2, 1)),
        ({"LSB_HOSTS": "a a b"}, {}, ("a", "b"), (2, 1)),
        ({"PE_HOSTFILE": "f"}, {"f": "a 2 all.q@a UNDEFINED\nb 1 all.q@b\n"}, ("a", "b"), (2, 1)),
        (slurm("n[1-3]", NTASKS="5", TASKS_PER_NODE="2(x2),1"), {}, ("n1", "n2", "n3"), (2, 2, 1)),
        # Nobody asked for tasks: the counts are those of CPUs. Or they are those of a step on one node.
        (slurm("n[1-2]", TASKS_PER_NODE="8(x2)"), {}, ("n1", "n2"), (1, 1)),
        (slurm("n[1-2]", NTASKS="4", TASKS_PER_NODE="4"), {}, ("n1", "n2"), (1, 1)),
    ],
)
def test_a_scheduler_tells_its_hosts(tmp_path, environ, files, hosts, ranks):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    given = allocation({k: str(tmp_path / v) if v == "f" else v for k, v in environ.items()})
    assert (given.hosts, given.ranks) == (hosts, ranks)
    assert allocation({}) is None, "without a scheduler there is this machine alone"


@pytest.mark.env
def test_hosts_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(MissingDependency, match="PBS_NODEFILE=/nowhere"):
        allocation({"PBS_NODEFILE": "/nowhere"})
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(BadInput, match="is no name or IPv4"):
        allocation({"PBS_NODEFILE": str(tmp_path / "empty")})
    with pytest.raises(BadInput, match="no list of nodes"):
        allocation({HOSTS: "n[1-"})
    # mpiexec would take the number for its own, and the rest of an IPv6 address for a number.
    for host in ("a:2", "fe80::1", "-x", "a b"):
        with pytest.raises(BadInput, match="no name or IPv4 address"):
            allocation({HOSTS: f"b,{host}"})
    with pytest.raises(MissingDependency, match="flux"):
        allocation({"FLUX_URI": "local:///run/flux", "PATH": ""})


@pytest.mark.parametrize(
    ("given", "asked", "counts"),
    [
        (None, {}, (1,)),
        (None, {"ranks_per_node": 2}, (2,)),
        (None, {"ranks": 3}, (3,)),
        (None, {"ranks": 5, "nodes": 3}, (2, 2, 1)),
        (TWO, {}, (2, 1)),
        (TWO, {"ranks": 3}, (2, 1)),
        (TWO, {"ranks": 1}, (1,)),
        (TWO, {"ranks_per_node": 2}, (2, 2)),
        (TWO, {"nodes": 1}, (2,)),
    ],
)
def test_what_is_not_asked_for_is_the_allocations(given, asked, counts):
    assert ranks_on(given, **asked) == counts


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"nodes": 3}, r"has 2: a,b"),
        ({"nodes": 2, "ranks": 1}, "a rank for each node"),
        ({"ranks": 2, "ranks_per_node": 2}, "one of them"),
        ({"ranks": 0}, "1 to 1000000"),
    ],
)
def test_what_cannot_be_placed_is_refused(asked, message):
    with pytest.raises(BadInput, match=message):
        ranks_on(TWO, **asked)


@pytest.mark.env  # what each mpiexec says of itself decides how it is told where ranks go.
@pytest.mark.parametrize(
    ("says", "placed"),
    [
        # Open MPI 4 begins with this machine where it is told how many ranks a host has.
        ("Open MPI", ["--host", "192.0.2.1,192.0.2.1,192.0.2.2", "--map-by", "seq:OVERSUBSCRIBE", "--bind-to", "none"]),
        ("HYDRA", ["-hosts", "192.0.2.1:2,192.0.2.2:1"]),
    ],
)
def test_mpiexec_starts_ranks_on_the_hosts_that_are_named(tmp_path, monkeypatch, says, placed):
    program = tmp_path / "mpiexec"
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    monkeypatch.setenv(HOSTS, "192.0.2.1,192.0.2.2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    request = Request(
        command=["x"],
        nodes=2,
        ranks_per_node=2,
        counts=(2, 1),
        cores=2,
        rendezvous="tcp",
        bin=tmp_path,
        variables={"MINE": "1"},
        stdin_at="name",
    )
    launcher = LAUNCHERS.get("mpiexec")
    assert launcher.supports(request) is None
    [(argv, variables)] = launcher.processes(request)
    start = argv.index("-n")
    assert argv[start + 1] == "3" and argv[start + 2 : start + 2 + len(placed)] == placed
    handed = {name for flag, name in pairwise(argv) if flag == "-x"}
    assert ({"MINE", "MASTER_ADDR", "PATH", "TRANSECT_PAYLOAD"} <= handed) is (says == "Open MPI")
    assert "OMPI_COMM_WORLD_RANK" not in handed
    assert variables["MASTER_ADDR"] == "192.0.2.1" and variables["MINE"] == "1"
    assert argv[argv.index("--ranks-per-node") + 1] == "2,1" and sys.executable in argv
    # Rank 0 is on another machine: there is no socket of ours.
    assert "--stdin-at" not in argv
    monkeypatch.setenv(HOSTS, "192.0.2.1")
    assert "192.0.2.1" in launcher.supports(request)


def cells(*launchers: str) -> list[SimpleNamespace]:
    """Return what the runner of a block asks of its cells."""
    return [SimpleNamespace(spec={"system": {"launcher": name, "mpi_launcher": name}}) for name in launchers]


def test_this_machine_comes_first_where_a_study_runs_over_hosts(monkeypatch):
    me = socket.gethostname()
    monkeypatch.setenv(HOSTS, f"192.0.2.[7-8],{me},192.0.2.9")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    # One-node cells run here and are watched here: their ranks may not start on the first of the list.
    prepare_allocation(cells("mpiexec"))
    assert os.environ[HOSTS] == f"{me},192.0.2.7,192.0.2.8,192.0.2.9"
    # Those of a login node are none of a Slurm job.
    prepare_allocation(cells("srun", "mpiexec"))
    assert HOSTS not in os.environ


def test_a_study_begins_on_one_of_its_hosts(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv(HOSTS, "192.0.2.7,192.0.2.8")
    with pytest.raises(BadInput, match="start the study on one of these hosts"):
        prepare_allocation(cells("mpiexec"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        # In the environment hosts count like the option, however much else is asked for.
        ({"nodes": 1, "ranks_per_node": 2, "launcher": "plain"}, "does not reach --hosts 192.0.2.7"),
        ({"hosts": "192.0.2.8", "launcher": "srun"}, "does not reach --hosts 192.0.2.8"),
        ({"hosts": ""}, "no list of nodes"),
    ],
)
def test_hosts_are_never_passed_over(monkeypatch, asked, message):
    monkeypatch.setenv(HOSTS, "192.0.2.7")
    with pytest.raises(BadInput, match=message):
        launch(["nowhere"], framework="torch", strategy="ddp", **asked)


def test_hosts_that_go_by_other_names_tell_addresses_by_rank():
    answers = "1 192.0.2.2\n0 192.0.2.1\n"
    assert addresses_of(("n1-ib", "n2-ib"), lambda: answers) == ("192.0.2.1", "192.0.2.2")
    assert addresses_of(("n1.site", "n2"), lambda: "n2 192.0.2.2\nn1 192.0.2.1\n") == ("192.0.2.1", "192.0.2.2")
    with pytest.raises(MissingDependency, match="node n3 did not report"):
        addresses_of(("n1", "n3"), lambda: "n1 192.0.2.1\n")


@pytest.mark.parametrize(
    "printed",
    [
        "-----\nORTE was unable to reliably start one or more daemons.\n* not finding",
        "[mpiexec@n1] ui_cmd_cb (pmiserv_pmci.c:51): Launch proxy failed.\n",
    ],
)
def test_a_host_that_mpiexec_does_not_reach_is_no_crash_of_the_cell(printed, tmp_path):
    log = tmp_path / "output.log"
    log.write_text(f"root@n2: Permission denied (publickey).\n{printed}")
    job = SimpleNamespace(spec={"cell_limits": {}}, log=log)
    result = payload._judge(job, None, Outcome(end="exited", code=1, seconds=1.0, peak_bytes=0))  # type: ignore[arg-type]
    cause, words = result.cause, result.message
    assert cause is Cause.SCHEDULER and "root@n2: Permission denied" in words
