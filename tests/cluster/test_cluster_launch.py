"""`transect launch` in a batch script of somebody's own, on two nodes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT
from clusters import eventually

# What the other files need runs meanwhile.
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("side_by_side")]

TRANSECT = ("env", f"PYTHONPATH={ROOT / 'src'}", sys.executable, "-m", "transect")
# Every rank says who it is and adds up the ranks' numbers over gloo.
SUM = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "local", os.environ["LOCAL_RANK"],
      "at", os.environ["MASTER_ADDR"], "sum", int(total), flush=True)
dist.destroy_process_group()
"""
WAIT = """
import os, sys, time
print("waiting", os.getpid(), flush=True)
time.sleep(6000)
"""

ADD = """
from mpi4py import MPI
print("sum", MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), flush=True)
"""


@pytest.fixture
def job(cluster, tmp_path):
    """Return a function that submits `transect launch` and gives its job and output file."""

    submitted = []

    def submit(options: str, python: str, code: str):
        (tmp_path / "train.py").write_text(code)
        log = tmp_path / "log"
        (tmp_path / "job.sh").write_text(
            f"#!/bin/bash\nexport PYTHONPATH={ROOT / 'src'}\n"
            f"exec {sys.executable} -m transect launch {options} -- {python} {tmp_path}/train.py\n"
        )
        options = ("--parsable", "-N2", "--ntasks-per-node=2", "--mem=1500", "--no-requeue", f"--output={log}")
        submitted.append(cluster.run("sbatch", *options, str(tmp_path / "job.sh")).stdout.strip())
        return submitted[-1], log

    yield submit
    cluster.run("scancel", *submitted, check=False)


def ends(cluster, job: str) -> str:
    """Wait for a job's end; return its state and the exit code of its script."""
    done = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
    eventually(lambda: cluster.job_state(job) in done, what=f"job {job} ends")
    text = cluster.ask("scontrol", "show", "job", job)
    return text[text.index("ExitCode=") :].split()[0].removeprefix("ExitCode=")


def test_ddp_on_two_nodes_finds_its_ranks(cluster, job, torch_python):
    number, log = job(
        "--framework torch --strategy ddp --nodes 2 --ranks-per-node 2 --network-interface eth0", torch_python, SUM
    )
    assert ends(cluster, number) == "0:0", log.read_text()
    lines = sorted(line for line in log.read_text().splitlines() if " rank " in line)
    assert [line.split(" at ")[0] for line in lines] == [f"[{r}] rank {r} of 4 local {r % 2}" for r in range(4)]
    assert {line.split(" sum ")[1] for line in lines} == {"6"}
    assert len({line.split(" at ")[1] for line in lines}) == 1


def test_an_mpi_rank_that_is_late_in_a_fence_is_waited_for(cluster, job, base_python, tmp_path):
    """Slurm's PMIx does not by default, and Open MPI 5 then crashes at the first message."""
    library = tmp_path / "late_fence.so"
    source = ROOT / "tests" / "cluster" / "late_fence.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-lpthread"], check=True)
    found = list(Path(base_python).parents[1].glob("lib/**/libpmix.so.2"))
    assert found, "the environment's Open MPI brings its PMIx"
    late = f"env LD_PRELOAD={library} TEST_PMIX={found[0]} {base_python}"
    number, log = job("--framework numpy --strategy mpi-allreduce --nodes 2 --ranks-per-node 2", late, ADD)
    assert ends(cluster, number) == "0:0", log.read_text()
    lines = [line for line in log.read_text().splitlines() if "sum" in line]
    assert len(lines) == 4 and all(line.endswith("sum 6") for line in lines), lines


@pytest.mark.parametrize("how", ["a rank is killed", "the job is cancelled"])
def test_what_ends_one_rank_ends_the_others(cluster, job, base_python, tmp_path, how):
    options = "--framework numpy --strategy mpi-allreduce --nodes 2 --ranks-per-node 1"
    number, log = job(options, base_python, WAIT)
    eventually(lambda: log.exists() and log.read_text().count("waiting") == 2, what="two ranks")

    def ranks() -> list[str]:
        found = cluster.processes().items()
        return [str(p) for p, argv in found if argv.endswith(f"{tmp_path}/train.py") and "launch" not in argv]

    if how == "a rank is killed":
        cluster.run("kill", "-9", next(p for p in ranks() if "rank.py" not in cluster.processes()[int(p)]))
        assert ends(cluster, number) == "137:0", log.read_text()
    else:
        cluster.run("scancel", f"--signal={signal.SIGTERM.name}", "--batch", number)
        assert ends(cluster, number) != "0:0"
    eventually(lambda: not ranks(), what="no rank left")


def test_launch_in_a_step_of_somebody_elses(cluster, base_python):
    """What `srun -l` and `salloc --ntasks-per-gpu` leave in the environment shapes no step of ours."""
    launch = (*TRANSECT, "launch", "--framework", "numpy", "--strategy", "mpi-allreduce")
    outer = [*("salloc", "-N2", "-n2", "--mem=1500"), *("srun", "-n1", "-N1", "--label", "--overlap")]
    outer += ["env", "SLURM_NTASKS_PER_GPU=1"]
    code = "import os; from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.rank, c.size, os.uname().nodename)"

    def printed(*options: str) -> tuple[list[str], int]:
        """Return what the ranks printed but for their nodes, and on how many nodes they were."""
        done = cluster.run(*outer, *launch, *options, "--", base_python, "-c", code)
        lines = [line.rpartition(" ") for line in sorted(done.stdout.splitlines())]
        return [words for words, _, _ in lines], len({node for _, _, node in lines})

    # The outer step puts its own label before each line, and nobody another one.
    ranks = ["0: [0] 0 2", "0: [1] 1 2"]
    assert printed("--nodes", "2") == (ranks, 2)
    assert printed("--launcher", "mpiexec", "--ranks-per-node", "2") == (ranks, 1)


STUDY = """
name: inside
workloads: {iris-mlp-ce: {epochs: 1, reference_steps: 0}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], ranks: [2]}
"""


def test_a_study_for_one_machine_in_an_allocation_is_guarded_where_it_runs(cluster, tmp_path, base_python):
    (tmp_path / "study.yaml").write_text(STUDY)
    run = (*TRANSECT, "run", str(tmp_path / "study.yaml"), "train", "--results", str(tmp_path))
    # salloc runs the command on the login node.
    cluster.run("salloc", "-N2", "-n2", "--mem=1500", *run)
    (path,) = tmp_path.glob("inside/train/*/record.json")
    record = json.loads(path.read_text())
    assert record["status"] == "ok", record["message"]
    login = cluster.run("hostname").stdout.strip()
    assert record["provenance"]["host"] == login
    assert [look["host"] for look in record["provenance"]["guard_after"]] == [login]
