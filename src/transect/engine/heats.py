"""Heats: cells that are compared are measured together, so that what disturbs one disturbs all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transect.domain.cell import GPU_PROVIDERS
from transect.domain.errors import FAULTS
from transect.domain.pairs import joined, pairs_of
from transect.domain.record import Cause, Record, Status
from transect.domain.terminal import say
from transect.engine.allocation import is_of_one_node
from transect.engine.attempts import Attempt
from transect.engine.heat import Heat, Run
from transect.engine.job import Job
from transect.engine.stage import RUNNERS
from transect.engine.turns import Turns


def in_heats(jobs: Iterable[Job], attempt: int = 1) -> Iterator[list[Job]]:
    """Part jobs that run in this order into heats: those of one repeat that pairs join. Others are alone.

    Whoever takes from a cell that has not run yet waits for it. What a killed runner left in a heat runs alone: one of
    them may be the reason.
    """
    pending = {(job.cell.stage, job.cell.id): job for job in jobs}
    points = joined(pairs_of(job.spec for job in pending.values()))
    heats: dict[object, list[Job]] = defaultdict(list)
    heat_of: dict[tuple[str, str], object] = {}
    for key, job in pending.items():
        point = points.get((job.cell.stage, job.cell.without_repeat().id))
        alone = point is None or (attempt > 1 and Attempt(job.folder).was_together())
        heat_of[key] = key if alone else (point, job.cell.repeat)
        heats[heat_of[key]].append(job)
    while pending:
        first, job = next(iter(pending.items()))
        ready = [
            mate
            for mate in heats[heat_of[first]]
            if mate is job or not any(tuple(source) in pending for source in mate.spec["inputs"].values())
        ]
        heats[heat_of[first]] = [mate for mate in heats[heat_of[first]] if mate not in ready]
        for mate in ready:
            del pending[mate.cell.stage, mate.cell.id]
        yield ready


def turns_of(job: Job) -> Turns | None:
    """Return how a job's payload takes turns; None: it runs alone.

    So do those on several nodes or in a container, whose ranks may not reach this process, and those on GPUs, of whose
    memory some frameworks take all.
    """
    gpu = job.cell.device == "cuda" or job.cell.get("provider") in GPU_PROVIDERS
    if gpu or not is_of_one_node(job) or job.image_of(job.environment) is not None:
        return None
    try:
        return RUNNERS.get(job.cell.stage).turns(job)
    except FAULTS:  # such as of an input that is not there: its own run says so
        return None


def _is_once_more(records: Sequence[Record], limits: Mapping[str, Any]) -> bool:
    """Tell whether a heat is to be run again, all of it that ended well: it is compared as one."""
    fine = [record.details for record in records if record.status is Status.OK]
    short = all(details.get("payload_s", 0.0) <= limits["repeat_seconds"] for details in fine)
    return short and any(details.get("disturbed") for details in fine)


def _may_be_others_fault(record: Record, limits: Mapping[str, Any]) -> bool:
    """Whether a cell ended for want of memory, which others of its heat held, or by whoever saw to that."""
    own = limits["memory_mb"] and record.details.get("payload_peak_bytes", 0) > limits["memory_mb"] * 2**20
    return record.cause in (Cause.OUT_OF_MEMORY, Cause.KILLED) and not own


@dataclass(kw_only=True)
class Patience:
    """How often a block may yet replace a disturbed heat in vain: a machine that is never quiet would cost twice the time."""

    left: int = 2


def run_together(jobs: Sequence[Job], run: Run, patience: Patience) -> Iterator[Record]:
    """Run jobs that are compared, and yield their records: those that take turns in heats of as many as memory holds, then
    the others.

    Whoever is killed in a heat, or finds no memory there, runs once more by itself.
    """
    plans = [(job, turns_of(job)) for job in jobs]
    taking = [(job, plan) for job, plan in plans if plan is not None]
    if len(taking) > 1:
        say(f"[transect] {len(taking)} cells of {jobs[0].cell.stage} are measured in turn")
    while len(taking) > 1:
        made, limits = Heat(run).run(taking), taking[0][0].spec["cell_limits"]
        mates, taking = taking[: len(made)], taking[len(made) :]
        for again in range(1, limits["repeats_if_disturbed"] + 1):
            if not patience.left or not _is_once_more(made, limits):
                break
            fine = [place for place, record in enumerate(made) if record.status is Status.OK]
            for place, record in zip(fine, Heat(run, again).run([mates[place] for place in fine]), strict=False):
                made[place] = record
            patience.left -= _is_once_more(made, limits)
        for place, (job, _) in enumerate(mates if len(mates) > 1 else ()):
            if _may_be_others_fault(made[place], limits):
                made[place] = run(job, None)
        yield from made
    alone = [*(job for job, _ in taking), *(job for job, plan in plans if plan is None)]
    yield from (run(job, None) for job in alone)
