"""Faults of nodes and of Slurm itself: each ends in a report with the right cause, and nothing else is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clustered import ClusterRun, causes, cell_of, job_of, nothing_left, start, tells, waits_made
from clusters import eventually
from side_by_side import alone

pytestmark = pytest.mark.cluster

FOUR_NODES = """
name: {name}
plugins: [plugins]
limits: {{seconds: {seconds}, memory_mb: 600, repeats_if_disturbed: 0}}
workloads: {{iris-mlp-ce: {{epochs: 2}}}}
train:
  repeats: 1
  grids:
    - {{workloads: [iris-mlp-ce], frameworks: [numpy, test-waits], strategies: [mpi-allreduce],
       nodes: [4]}}
"""
# What a site's limit on submitted jobs answers, until somebody's jobs have left the queue.
FULL = """#!/bin/sh
[ -e {folder}/full ] && {{ echo "sbatch: error: Batch job submission failed: Job violates \
accounting/QOS policy (job submit limit, user's size and/or time limits)" >&2; exit 1; }}
"""


def rank_of(checkout, folder: Path) -> int:
    """Return the one rank of the cell in `folder`, as the login node numbers it."""
    (rank,) = (
        pid
        for pid, argv in checkout.cluster.processes(below=folder).items()
        if "transect.payloads.train" in argv and not argv.startswith("srun") and "rank.py" not in argv
    )
    return rank


class Faults:
    """What befalls a waiting cell: each method returns the cause that its record has to name."""

    def __init__(self, checkout) -> None:
        self.checkout, self.cluster = checkout, checkout.cluster
        self.run: ClusterRun

    def node(self, folder: Path) -> str:
        """Return where the cell runs."""
        return self.cluster.ask("squeue", "-h", "-j", job_of(folder), "-o", "%N").strip()

    def kill_rank(self, folder: Path) -> str:
        self.cluster.run("kill", "-9", str(rank_of(self.checkout, folder)))
        return "killed"

    def restart_slurmd(self, folder: Path) -> str:
        self.cluster.command("restart", "slurmd", self.node(folder))
        (folder / "release").touch()
        return "ok"

    def restart_slurmctld(self, folder: Path) -> str:
        self.cluster.command("restart", "slurmctld")
        (folder / "release").touch()
        return "ok"

    def silent_sacct(self, folder: Path) -> str:
        """slurmdbd is down, for all that follows: the controller tells how jobs end.

        The stock executor drops its jobs when sacct fails often enough, and waits for ever.
        https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/331
        """
        for name in ("sacct", "sacctmgr"):
            shim = self.checkout.folder / "shims" / name
            shim.write_text("#!/bin/sh\necho 'Connection refused' >&2\nexit 1\n")
            shim.chmod(0o755)
        tells(self.run, "sacct does not answer")
        (folder / "release").touch()
        return "ok"

    def drain(self, folder: Path) -> str:
        """The node of a running cell is drained: the cell ends in peace."""
        node = self.node(folder)
        self.cluster.run("scontrol", "update", f"node={node}", "state=drain", "reason=test")
        (folder / "release").touch()
        eventually((folder / "record.json").exists, what="its record")
        self.cluster.run("scontrol", "update", f"node={node}", "state=resume")
        return "ok"

    def scancel(self, folder: Path) -> str:
        self.cluster.run("scancel", job_of(folder))
        return "killed"

    def time_limit(self, folder: Path) -> str:
        self.cluster.run("scontrol", "update", f"jobid={job_of(folder)}", "timelimit=0")
        return "timeout"

    def lose_slurmd(self, folder: Path) -> str:
        """A node's daemon dies and comes back: the job is declared dead, its runner lives on."""
        node, job = self.node(folder), job_of(folder)
        daemon = [p for p, argv in self.cluster.processes(node).items() if argv.split()[0] == "slurmd"]
        self.cluster.node_run(node, "kill", "-9", *map(str, daemon))
        self.cluster.run("scontrol", "update", f"node={node}", "state=down", "reason=test")
        (folder / "release").touch()
        assert self.cluster.job_state(job) == "NODE_FAIL"
        self.cluster.command("restart", "slurmd", node)
        return "node-failure"

    def lose_stepd(self, folder: Path) -> str:
        """The daemon of the cell's step is killed: Slurm says nothing, and srun waits."""
        found = self.cluster.processes(self.node(folder)).items()
        step = re.compile(rf"slurmstepd: \[{job_of(folder)}\.\d+\]")
        daemon = [str(pid) for pid, argv in found if step.match(argv)]
        self.cluster.node_run(self.node(folder), "kill", "-9", *daemon)
        eventually((folder / "record.json").exists, what="its record")
        return "node-failure"

    def power_cut(self, folder: Path) -> str:
        """The node does not come back: what was to run on it runs elsewhere."""
        node = self.node(folder)
        self.cluster.command("kill-node", node)
        assert self.cluster.node_run(node, "true", check=False).returncode == 3
        eventually(lambda: "down" in self.cluster.node_state(node), what=f"{node} down")
        self.dead = node
        return "node-failure"


@alone
def test_faults_one_after_another_end_each_in_its_own_cause(make):
    """A full queue, drained nodes, and then all of `Faults` in one run, whose other cells are spared."""
    name, checkout = "faults", waits_made(make)
    faults, cluster = Faults(checkout), checkout.cluster
    shim = checkout.folder / "shims" / "sbatch"
    kept = shim.read_text()
    shim.write_text(FULL.format(folder=checkout.folder) + kept)
    (checkout.folder / "full").touch()
    cluster.run("scontrol", "update", "node=n1,n2", "state=drain", "reason=test")
    try:
        run = faults.run = start(checkout, name, repeats=10)
        # The stock executor fails a job at the first refusal.
        tells(run, "Slurm refuses prepare.n1", times=2)
        (checkout.folder / "full").unlink()
        assert faults.node(checkout.waits(name)) not in ("n1", "n2")
        assert "Trying to restart" not in run.text() and "Error" not in run.text()
    finally:
        cluster.run("scontrol", "update", "node=n1,n2", "state=resume")
    expected: dict[str, str] = {}
    folder = None
    for fault in (
        faults.kill_rank,
        faults.restart_slurmd,
        faults.restart_slurmctld,
        faults.silent_sacct,
        faults.drain,
        faults.lose_stepd,
        faults.scancel,
        faults.lose_slurmd,
        faults.time_limit,
        faults.power_cut,
    ):
        folder = checkout.waits(name, other_than=folder)
        expected[cell_of(folder)] = fault(folder)
    text = run.ends()
    cluster.command("start-node", faults.dead)
    found = causes(checkout, name)
    assert {cell: found[cell] for cell in expected} == expected, text
    # Two blocks, and one submission more for each fault that ended a job: no retry inside another
    # (https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/284).
    assert checkout.submitted("train_wildcards_iris-mlp-ce.n1") == 2 + 4
    others = {cell: cause for cell, cause in found.items() if cell not in expected}
    assert set(others.values()) == {"ok"} and len(others) == 10
    nothing_left(checkout)
    report = (checkout.folder / "results" / name / "report.html").read_text()
    for cause in ("killed", "timeout", "node-failure"):
        assert cause in report
    messages = [r["message"] for r in checkout.records(name).values() if r["message"]]
    assert any("the daemon of step" in m for m in messages), messages
    assert any("cancelled" in m for m in messages), messages
    assert any("time limit" in m for m in messages), messages


@alone
def test_a_power_cut_in_a_four_node_cell_spares_the_others(make):
    """The stock executor then excludes all four nodes, and a small cluster has no others."""
    name, checkout = "four", waits_made(make)
    cluster = checkout.cluster
    run = start(checkout, name, FOUR_NODES)
    folder = checkout.waits(name)
    nodes = cluster.ask("scontrol", "show", "hostnames", Faults(checkout).node(folder)).split()
    # Not the first, where the block's own runner is.
    cluster.command("kill-node", nodes[2])
    eventually(lambda: "down" in cluster.node_state(nodes[2]), what=f"{nodes[2]} down")
    # Somebody repairs it: the other cells of the block need four nodes.
    cluster.command("start-node", nodes[2])
    text = run.ends()
    found = causes(checkout, name)
    assert found.pop(cell_of(folder)) == "node-failure", text
    messages = [r["message"] for r in checkout.records(name).values() if r["message"]]
    assert set(found.values()) == {"ok"}, (messages, text)
    assert not any("--exclude" in word for words in checkout.submissions() for word in words)
    assert checkout.submitted("train_wildcards_iris-mlp-ce.n4") == 2
    # Slurm's own requeueing would run the job a second time beside Snakemake's
    # (https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/353).
    assert {job["restarts"] for job in checkout.jobs()} == {"0"}
    nothing_left(checkout)
