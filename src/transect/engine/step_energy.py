"""What Slurm's accounting tells of a job step's energy, where the system file says that it counts it.

The plug-ins `acct_gather_energy` add up the power of the step's nodes, of the whole nodes whoever else is on them
(https://slurm.schedmd.com/acct_gather.conf.html); sacct tells it when the step is over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from transect.domain.files import digest
from transect.domain.record import MetricValue, Status
from transect.engine.job import Job, Result
from transect.engine.scheduler import ask
from transect.launch.processes import Outcome

# The label of the metric `energy`: no counter of the training loop alone.
COUNTER = "slurm step"
_FIELDS = "JobID,JobName,State,ConsumedEnergyRaw"
# Slurm's "no value", 32 and 64 bits wide, and what it prints of nodes that tell nothing.
_NO_VALUES = (0, 0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
# Accounts of a step come when its nodes have reported, not when its ranks have ended.
_PATIENCE_S = 15


def counts_energy(job: Job) -> bool:
    """Tell whether the system's file says that Slurm counts the energy of job steps, and this is its job."""
    about = job.spec.get("about") or {}
    return bool(about.get("step_energy")) and "SLURM_JOB_ID" in os.environ


def step_name(job: Job) -> str:
    """Return how the cell's job step is called, to find it among those of its job."""
    return f"transect-{digest([job.cell.stage, job.cell.id])[:12]}"


def note_energy(job: Job, outcome: Outcome, result: Result) -> None:
    """Add the energy of the cell's job step to its result, or to its details why that is not known."""
    if not counts_energy(job) or result.status is not Status.OK:
        return
    told = _joules(os.environ["SLURM_JOB_ID"], step_name(job))
    if isinstance(told, str):
        result.details["step_energy"] = {"missing": told}
        return
    result.details["step_energy"] = {"seconds": outcome.seconds}
    result.metrics.append(MetricValue.of("energy", told, label=COUNTER))


def _joules(
    number: str, name: str, within_s: float = _PATIENCE_S, sleep: Callable[[float], object] = time.sleep
) -> float | str:
    """Return the energy of the last step of that name in J, or why it is not known."""
    begin = time.monotonic()
    while True:
        text = ask("sacct", "-j", number, "-n", "-P", "-o", _FIELDS)
        if text is None:
            return "sacct does not answer"
        told, final = _read(text, name)
        if final or time.monotonic() - begin > within_s:
            return told
        sleep(0.5)


def _read(text: str, name: str) -> tuple[float | str, bool]:
    """Return what sacct's table says of the last step of that name, and whether it will say no more."""
    rows = [line.split("|") for line in text.splitlines()]
    own = [row for row in rows if len(row) == 4 and row[1] == name]
    if not own:
        return f"sacct knows no step {name}", False
    state, raw = own[-1][2:]
    if not state.startswith("COMPLETED"):
        return f"sacct calls the step {own[-1][0]} {state or 'nothing'}", False
    if not raw.strip():
        return f"sacct tells no energy of the step {own[-1][0]}", False
    if not raw.strip().isdecimal() or int(raw) in _NO_VALUES:
        return f"sacct tells '{raw.strip()}' as the energy of the step {own[-1][0]}", True
    return float(raw), True
