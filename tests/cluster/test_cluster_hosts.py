"""Two hosts that no scheduler has given: mpiexec and ssh start ranks there, and a whole study runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from checkouts import ROOT
from clusters import VirtualCluster
from launching import LAUNCH, TORCH

# The last two nodes, which other tests ask Slurm for rarely; nothing here asks Slurm.
HOSTS = ("n11", "n12")
SYSTEM = {
    "name": "two-hosts",
    "launcher": "mpiexec",
    "mpi_launcher": "mpiexec",
    "nodes": 2,
    "cores_per_node": 2,
    "physical_cores": 2,
    "networks": {"direct": {"interface": "eth0"}},
    "network": "direct",
}
STUDY = """
name: onhosts
limits: {seconds: 300, memory_mb: 1500, repeats_if_disturbed: 0}
workloads: {iris-mlp-ce: {epochs: 2, learning_rate: 0.02}}
train:
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], nodes: [1, 2], ranks: [2]}
"""
WHO = """
import os, socket
print(os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"], socket.gethostname(), flush=True)
"""


def reachable(cluster: VirtualCluster, folder: Path) -> dict[str, str]:
    """Start a shell daemon on both hosts; return the variables by which each mpiexec gets through."""
    daemon = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(daemon).exists():
        pytest.skip("no sshd here (Debian package openssh-server)")
    folder.mkdir()
    for name in ("host", "key"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(made, check=True)
    (folder / "config").write_text(
        f"Port 2222\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/key.pub\nPidFile none\n"
        "PasswordAuthentication no\nUsePAM no\nStrictModes no\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    for host in HOSTS:
        cluster.node_run(host, daemon, "-f", str(folder / "config"))
    options = f"-p 2222 -i {folder}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    return {"OMPI_MCA_plm_rsh_args": options, "PRTE_MCA_plm_ssh_args": options}


def on_hosts(make):
    """Run the study and both kinds of ranks on the hosts, without Slurm."""
    checkout = make()
    cluster = checkout.cluster
    ssh = reachable(cluster, checkout.folder / "ssh")
    checkout.study(STUDY)
    (checkout.folder / "hosts.yaml").write_text(yaml.safe_dump(SYSTEM))
    nodefile = checkout.folder / "nodefile"
    # The machine that starts the study and the ranks stands there as the second.
    nodefile.write_text("n12\nn11\nn11\n")
    variables = checkout.environment() | ssh | {"PBS_NODEFILE": str(nodefile)}
    paths = {"PYTHONPATH": str(ROOT / "src")}
    ranks = (*LAUNCH, *TORCH, "--", sys.executable, "-c", WHO)
    who = cluster.run(*ranks, node=HOSTS[0], env=variables | paths)
    snakemake = (str(Path(sys.executable).with_name("snakemake")), "--profile", "profiles/local")
    study = ("--config", "study=study.yaml", "system=hosts.yaml")
    made = cluster.run(*snakemake, *study, node=HOSTS[0], cwd=checkout.folder, env=variables, check=False)
    return checkout, who, made


pytestmark = [pytest.mark.cluster, pytest.mark.beside.with_args(on_hosts)]


def test_what_a_job_has_decides_how_many_ranks_start_where(ran):
    _, who, _ = ran
    lines = sorted(line.split() for line in who.stdout.splitlines())
    assert lines == [["[0]", "0", "3", "0", "n12"], ["[1]", "1", "3", "0", "n11"], ["[2]", "2", "3", "1", "n11"]]


def test_a_whole_study_runs_on_the_hosts_of_one_allocation(ran):
    checkout, _, made = ran
    assert made.returncode == 0, made.stdout + made.stderr
    records = checkout.records("onhosts")
    bad = {cell: r["message"] for cell, r in records.items() if r["status"] != "ok"}
    assert not bad
    two = records["train/iris-mlp-ce.numpy.mpi-allreduce.n2x2.b16.fp32"]
    assert [node["host"] for node in two["provenance"]["guard_after"]] == list(HOSTS)
    assert two["provenance"]["slurm"] == {"TRANSECT_HOSTS": "n11,n12"}
    assert {m["name"]: m["value"] for m in two["metrics"]}["equality_ratio"] < 1
    single = records["train/iris-mlp-ce.numpy.mpi-allreduce.n1x2.b16.fp32"]
    assert [node["host"] for node in single["provenance"]["guard_after"]] == [HOSTS[0]]
