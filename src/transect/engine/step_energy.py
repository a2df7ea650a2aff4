"""What a scheduler tells of a job step's energy, where the system file says that it counts it."""

from __future__ import annotations

from transect.domain.files import digest
from transect.domain.record import MetricValue, Status
from transect.engine.job import Job, Result
from transect.engine.scheduler import scheduler
from transect.launch.processes import Outcome

# The label of the metric `energy`: no counter of the training loop alone.
COUNTER = "slurm step"


def counts_energy(job: Job) -> bool:
    """Tell whether the system's file says that the scheduler counts the energy of job steps, and this is its job."""
    about = job.spec.get("about") or {}
    return bool(about.get("step_energy")) and scheduler().job() is not None


def step_name(job: Job) -> str:
    """Return how the cell's job step is called, to find it among those of its job."""
    return f"transect-{digest([job.cell.stage, job.cell.id])[:12]}"


def note_energy(job: Job, outcome: Outcome, result: Result) -> None:
    """Add the energy of the cell's job step to its result, or to its details why that is not known."""
    if not counts_energy(job) or result.status is not Status.OK:
        return
    told = scheduler().step_energy(step_name(job))
    if isinstance(told, str):
        result.details["step_energy"] = {"missing": told}
        return
    result.details["step_energy"] = {"seconds": outcome.seconds}
    result.metrics.append(MetricValue.of("energy", told, label=COUNTER))
