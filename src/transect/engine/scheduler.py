"""What Slurm says: whether it keeps accounts, and what became of a job."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transect.domain.errors import MissingDependency
from transect.domain.record import Cause
from transect.launch import slurm

# Where the executor keeps the output of jobs, in the folder that Snakemake runs in.
LOGS = Path(".snakemake") / "slurm_logs"
# What is asked once and believed is asked again while nobody answers.
_PATIENCE_S = 300
# While its last nodes clean up, a job that has failed is called COMPLETING.
_CLEANING_S = 60

_CAUSES = {
    "TIMEOUT": Cause.TIMEOUT,
    "DEADLINE": Cause.TIMEOUT,
    "NODE_FAIL": Cause.NODE_FAILURE,
    "BOOT_FAIL": Cause.NODE_FAILURE,
    "OUT_OF_MEMORY": Cause.OUT_OF_MEMORY,
    "PREEMPTED": Cause.SCHEDULER,
    "REVOKED": Cause.SCHEDULER,
    "CANCELLED": Cause.KILLED,
}
_WORDS = {
    "TIMEOUT": "reached its time limit",
    "DEADLINE": "reached its deadline",
    "NODE_FAIL": "lost a node",
    "BOOT_FAIL": "got a node that did not boot",
    "OUT_OF_MEMORY": "ran out of memory",
    "PREEMPTED": "was preempted",
    "REVOKED": "was revoked",
    "CANCELLED": "was cancelled",
}
_FINAL = {*_CAUSES, "COMPLETED", "FAILED"}
# A Slurm that samples memory kills the job and calls it FAILED: only its log tells why.
_MEMORY = re.compile(r"exceeded (?:job |step )?memory limit|oom[-_ ]kill|Out Of Memory", re.I)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """How a job ended, in the words of a record."""

    cause: Cause
    message: str


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
    return bool(match) and "none" not in match[1]


def final_state(job: str) -> str | None:
    """Return the state in which Slurm holds a job that is over, UNKNOWN for one that it has forgotten.

    None: it goes on, or the controller cannot be asked now.
    """
    found = _from_controller(job, patience_s=0)
    if found is None:
        return None if known(job) else "UNKNOWN"
    return found[0] if found[0] in _FINAL else None


def _from_controller(job: str, patience_s: float = _PATIENCE_S) -> tuple[str, str, str] | None:
    text = ask("scontrol", "--oneliner", "show", "job", job, patience_s=patience_s)
    state = re.search(r"\bJobState=(\S+)", text or "")
    if not text or not state:
        return None
    nodes = re.search(r"\bNodeList=(\S+)", text)
    reason = re.search(r"\bReason=(.+?) Dependency=", text)
    return state[1], nodes[1] if nodes else "", reason[1] if reason else ""


def _after_cleaning(job: str) -> tuple[str, str, str] | None:
    """Return what the controller says once the job's nodes have cleaned up, or took too long to."""
    end = time.monotonic() + _CLEANING_S
    while (found := _from_controller(job)) and found[0] == "COMPLETING":
        if time.monotonic() >= end:
            break
        time.sleep(1)
    return found


def runs(job: str) -> bool | None:
    """Tell whether a job may still run something, queued ones included; None: Slurm does not say."""
    found = _after_cleaning(job)
    return None if found is None else found[0] not in _FINAL


def _from_accounting(job: str) -> tuple[str, str, str] | None:
    text = ask("sacct", "-j", job, "-X", "-n", "-P", "-o", "State,NodeList,Reason", patience_s=_PATIENCE_S)
    if not text or not text.strip():
        return None
    state, nodes, reason = [*text.splitlines()[0].split("|"), "", ""][:3]
    # "CANCELLED by 1000"
    return state.split()[0], nodes, reason if reason != "None" else ""


def _log_tells_memory(job: str, logs: Path) -> bool:
    for path in logs.rglob(f"{job}.log"):
        try:
            if _MEMORY.search(path.read_text(errors="replace")):
                return True
        except OSError:
            continue
    return False


def fate(job: str, logs: Path = LOGS) -> Fate:
    """Return what became of a job that ended without its runner saying so.

    `logs` is the folder of the jobs' own output, read when the state alone does not tell.
    """
    found = _after_cleaning(job)
    if (found is None or found[0] == "COMPLETING") and accounting():
        found = _from_accounting(job) or found
    if found is None:
        return Fate(cause=Cause.KILLED, message=f"Slurm no longer knows what became of job {job}")
    state, nodes, reason = found
    if state == "FAILED" and _log_tells_memory(job, logs):
        state = "OUT_OF_MEMORY"
    where = f" on {nodes}" if nodes and nodes != "(null)" else ""
    if state in _CAUSES:
        detail = f" ({reason})" if reason and reason not in ("None", "TimeLimit") else ""
        return Fate(cause=_CAUSES[state], message=f"job {job}{where} {_WORDS[state]}{detail}")
    return Fate(cause=Cause.KILLED, message=f"its runner in job {job}{where} was killed; Slurm calls the job {state}")
