"""What Slurm says of jobs, of their steps, and of what a user may charge."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from transect.adapters.slurm import steps
from transect.domain.errors import MissingDependency
from transect.domain.owner import user_name
from transect.domain.record import Cause
from transect.engine.scheduler import SCHEDULERS, Fate, Scheduler
from transect.launch import slurm

# Where the executor keeps the output of jobs, in the folder that Snakemake runs in.
LOGS = Path(".snakemake") / "slurm_logs"
# What is asked once and believed is asked again while nobody answers.
_PATIENCE_S = 300
# While its last nodes clean up, a job that has failed is called COMPLETING.
_CLEANING_S = 60

_ACCOUNTS_S = 15

_CAUSES = {
    "TIMEOUT": (Cause.TIMEOUT, "reached its time limit"),
    "DEADLINE": (Cause.TIMEOUT, "reached its deadline"),
    "NODE_FAIL": (Cause.NODE_FAILURE, "lost a node"),
    "BOOT_FAIL": (Cause.NODE_FAILURE, "got a node that did not boot"),
    "OUT_OF_MEMORY": (Cause.OUT_OF_MEMORY, "ran out of memory"),
    "PREEMPTED": (Cause.SCHEDULER, "was preempted"),
    "REVOKED": (Cause.SCHEDULER, "was revoked"),
    "CANCELLED": (Cause.KILLED, "was cancelled"),
}
_FINAL = {*_CAUSES, "COMPLETED", "FAILED"}
# A Slurm that samples memory kills the job and calls it FAILED: only its log tells why.
_MEMORY = re.compile(r"exceeded (?:job |step )?memory limit|oom[-_ ]kill|Out Of Memory", re.I)


def ask(*command: str, patience_s: float = 0) -> str | None:
    """Return what a Slurm command prints; None when it fails, hangs or is not there.

    For `patience_s` it is asked again when the controller only cannot answer now.
    """
    try:
        return slurm.ask(*command, patience_s=patience_s)
    except MissingDependency:
        return None


def known(job: str) -> bool:
    """Tell whether Slurm knows a job; True also when it cannot be asked now."""
    return ask("scontrol", "show", "job", job) is not None or ask("scontrol", "ping") is None


@cache
def accounting() -> bool:
    """Tell whether this Slurm has a database that `sacct` can ask."""
    text = ask("scontrol", "show", "config", patience_s=_PATIENCE_S) or ""
    match = re.search(r"^AccountingStorageType\s*=\s*(\S+)", text, re.MULTILINE)
    return match is not None and "none" not in match[1]


@cache
def associations() -> dict[str, list[str]] | None:
    """Return the QOS of each account that this user may charge; None when sacctmgr does not answer."""
    text = ask("sacctmgr", "-nP", "show", "assoc", f"user={user_name()}", "format=account,qos")
    if text is None:
        return None
    found: dict[str, list[str]] = {}
    for account, _, qos in (line.partition("|") for line in text.splitlines()):
        found.setdefault(account, []).extend(qos.split(",") if qos else [])
    return found


def _from_controller(job: str, patience_s: float = _PATIENCE_S) -> tuple[str, str, str] | None:
    text = ask("scontrol", "--oneliner", "show", "job", job, patience_s=patience_s)
    state = re.search(r"\bJobState=(\S+)", text or "")
    if not text or not state:
        return None
    nodes = re.search(r"\bNodeList=(\S+)", text)
    reason = re.search(r"\bReason=(.+?) Dependency=", text)
    return state[1], nodes[1] if nodes else "", reason[1] if reason else ""


def _after_cleaning(job: str) -> tuple[str, str, str] | None:
    end = time.monotonic() + _CLEANING_S
    while (found := _from_controller(job)) and found[0] == "COMPLETING" and time.monotonic() < end:
        time.sleep(1)
    return found


def _from_accounting(job: str) -> tuple[str, str, str] | None:
    text = ask("sacct", "-j", job, "-X", "-n", "-P", "-o", "State,NodeList,Reason", patience_s=_PATIENCE_S)
    if not text or not text.strip():
        return None
    state, nodes, reason = [*text.splitlines()[0].split("|"), "", ""][:3]
    # "CANCELLED by 1000"
    return state.split()[0], nodes, reason if reason != "None" else ""


@SCHEDULERS.register("slurm")
class Slurm(Scheduler):
    """Slurm 21.08 or later, asked by its own programs."""

    def is_here(self) -> bool:
        """Within a job, or where jobs are submitted."""
        return self.job() is not None or shutil.which("squeue") is not None

    def job(self) -> str | None:
        """Return the number that Slurm gives its jobs' processes."""
        return os.environ.get("SLURM_JOB_ID")

    def runs(self, job: str) -> bool | None:
        """Tell whether it is in no final state."""
        found = _after_cleaning(job)
        return None if found is None else found[0] not in _FINAL

    def final_state(self, job: str) -> str | None:
        """Return the state in which Slurm holds a job that is over, UNKNOWN for one that it has forgotten."""
        found = _from_controller(job, patience_s=0)
        if found is None:
            return None if known(job) else "UNKNOWN"
        return found[0] if found[0] in _FINAL else None

    def fate(self, job: str, logs: Path = LOGS) -> Fate:
        """Say it by the controller, else by accounts.

        `logs` is the folder of the jobs' own output, read when the state alone does not tell.
        """
        found = _after_cleaning(job)
        if (found is None or found[0] == "COMPLETING") and accounting():
            found = _from_accounting(job) or found
        if found is None:
            return Fate(cause=Cause.KILLED, message=f"Slurm no longer knows what became of job {job}")
        state, nodes, reason = found
        texts = (path.read_text(errors="replace") for path in logs.rglob(f"{job}.log"))
        if state == "FAILED" and any(map(_MEMORY.search, texts)):
            state = "OUT_OF_MEMORY"
        where = f" on {nodes}" if nodes and nodes != "(null)" else ""
        if state in _CAUSES:
            cause, words = _CAUSES[state]
            detail = f" ({reason})" if reason and reason not in ("None", "TimeLimit") else ""
            return Fate(cause=cause, message=f"job {job}{where} {words}{detail}")
        text = f"its runner in job {job}{where} was killed; Slurm calls the job {state}"
        return Fate(cause=Cause.KILLED, message=text)

    def queued(self, names: Sequence[str], patience_s: float = 0) -> list[str] | None:
        """Ask squeue."""
        text = ask("squeue", "--noheader", "--format=%A", "--name", ",".join(names), patience_s=patience_s)
        return None if text is None else sorted(set(text.split()))

    def cancel(self, jobs: Sequence[str], patience_s: float) -> bool:
        """Ask scancel."""
        return ask("scancel", *jobs, patience_s=patience_s) is not None

    def how_to_cancel(self, *jobs: str) -> str:
        """Return the call of scancel."""
        return f"scancel {' '.join(jobs)}"

    def hosts(self) -> list[str]:
        """Return the job's nodes; Snakemake strips the variable that names them from its jobs."""
        job = self.job()
        if job and "SLURM_JOB_NODELIST" not in os.environ:
            text = ask("squeue", "--noheader", "--jobs", job, "--format=%N", patience_s=_PATIENCE_S)
            if text and text.strip():
                os.environ["SLURM_JOB_NODELIST"] = text.strip()
        nodes = os.environ.get("SLURM_JOB_NODELIST")
        return slurm.expand_hosts(nodes) if nodes else []

    def on_hosts(self, count: int) -> list[str]:
        """Return srun, for a step that overlaps those of cells."""
        each = [f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1", "--cpus-per-task=1"]
        return [*slurm.srun(), *each, "--overlap", "--mem=0", "--mpi=none", "--quiet", "--export=ALL"]

    def newest_step(self) -> str | None:
        """Return the one of the highest number."""
        job = self.job()
        listed = ask("squeue", "--noheader", "--steps", f"--job={job}", "--format=%i") if job else None
        numbers = re.findall(rf"^\s*{job}\.(\d+)\s*$", listed or "", re.MULTILINE)
        return f"{job}.{max(map(int, numbers))}" if numbers else None

    refusal = staticmethod(steps.refusal)
    step_cause = staticmethod(steps.step_cause)

    def end_step(self, step: str, within_s: float) -> bool:
        """Cancel it, and wait until squeue no longer has it."""
        ask("scancel", step)
        begin = time.monotonic()
        while True:
            listed = ask("squeue", "--noheader", "--steps", f"--job={self.job()}", "--format=%i")
            if listed is not None and step not in listed.split():
                return True
            if time.monotonic() - begin > within_s:
                return False
            time.sleep(0.5)

    def step_energy(self, name: str) -> float | str:
        """Ask sacct until the step's accounts are there, which come when its nodes have reported.

        The plug-ins `acct_gather_energy` add up the power of the step's nodes, of the whole nodes whoever else
        is on them (https://slurm.schedmd.com/acct_gather.conf.html).
        """
        begin = time.monotonic()
        while True:
            text = ask("sacct", "-j", str(self.job()), "-n", "-P", "-o", steps.ENERGY_FIELDS)
            if text is None:
                return "sacct does not answer"
            energy, final = steps.energy(text, name)
            if final or time.monotonic() - begin > _ACCOUNTS_S:
                return energy
            time.sleep(0.5)
