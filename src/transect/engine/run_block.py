"""Run the cells of one allocation block: `python -m transect.engine.run_block --block FILE …`.

Cells run one after another in the order of the block's file, or in turn with those that they are compared with; each record is written at once, so
that a block which is interrupted goes on with the missing ones. Exit code 0 means that every
record is there.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from transect.domain.errors import FAULTS, BadInput, Interruption, say_fault
from transect.domain.files import write_atomic
from transect.domain.owner import is_abandoned
from transect.domain.paths import StudyPaths
from transect.domain.record import Record
from transect.domain.terminal import say
from transect.engine.allocation import job_is_over, open_guard, prepare_allocation
from transect.engine.heats import Patience, in_heats, run_together
from transect.engine.job import Job, check_locks, load_job
from transect.engine.locks import leased
from transect.engine.plan_files import read_block
from transect.engine.progress import EarlyReport, Progress
from transect.engine.repetition import Repetition, deadline_of
from transect.engine.run_cell import run_job
from transect.engine.scheduler import scheduler
from transect.engine.seat import Seat
from transect.engine.staleness import newest_change
from transect.engine.store import MISSING, Damaged, intact, kept, set_aside, used_limits

# What is open and why, at the end of a block; the report tells all.
_MOST_LACKS = 4


def _interrupted(number: int, _: FrameType | None) -> NoReturn:
    raise Interruption(128 + number)


def end_on_signals() -> None:
    """Turn the signals that ask for an end into Interruption, so that payloads are ended too.

    A SIGHUP that somebody had ignored, as `nohup` has, stays so: the terminal's end is not to be theirs.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupted)


def _drop_stale(jobs: Iterable[Job]) -> list[Job]:
    """Remove every record that no longer holds; return the cells that have to run.

    Before anything runs: a report that is made after a job was cut short must not show them.
    One that takes from a cell which runs here is set aside: its input may come out as it was.
    """
    todo: dict[tuple[str, str], Job] = {}
    for job in jobs:
        # What it takes from a cell without a record would be read as it still lies there.
        takes = any(tuple(source) in todo for source in job.spec["inputs"].values())
        if not takes and kept(job):
            continue
        found, record = intact(job.paths, job.spec), job.folder / "record.json"
        if isinstance(found, Damaged):
            aside = set_aside(job.paths, job.cell.stage, job.cell.id)
            message = f"{job.cell.stage}/{job.cell.id}: {found.what}"
            say(f"[transect] {message}: made again; the old record is kept as {aside}")
        elif found is not MISSING and takes:
            record.replace(job.paths.record_aside(job.cell.stage, job.cell.id))
        else:
            record.unlink(missing_ok=True)
        todo[job.cell.stage, job.cell.id] = job
    return list(todo.values())


def _holds_again(job: Job) -> bool:
    try:
        aside = job.paths.record_aside(job.cell.stage, job.cell.id)
        aside.replace(job.folder / "record.json")
    except OSError:
        return False
    return kept(job)


def run_jobs(jobs: list[Job], paths: StudyPaths, attempt: int, repetition: Repetition | None = None) -> int:
    """Run all cells that have no valid record, then the repeats that are needed; return how many ran.

    A cell takes what the cells before it left, so its inputs are looked at again in its turn.
    Raises DiskFull when results cannot be written, and BadInput when an environment was exchanged.
    """
    prepare_allocation(jobs)
    for job in jobs:
        check_locks(job)
    stale = _drop_stale(jobs)
    todo = [job for job in stale if not job.spec.get("optional")]
    further = repetition if repetition is not None and repetition.has_optional_repeats else None
    if not todo and further is None:
        return 0
    progress, ran = Progress(paths), 0
    early = None if scheduler().job() else EarlyReport(paths)
    patience = Patience()
    with open_guard(jobs) as guard:

        def run(job: Job, seat: Seat | None) -> Record:
            if is_abandoned() or job_is_over(job.spec["system"]):
                say("[transect] its Snakemake or its job has gone: the remaining cells are left")
                raise Interruption(1)
            return run_job(job, attempt, guard, seat)

        def run_some(jobs: Sequence[Job]) -> None:
            nonlocal ran
            for heat in in_heats(jobs, attempt):
                for record in run_together([job for job in heat if not _holds_again(job)], run, patience):
                    progress.note(record)
                    ran += 1
                if early is not None:
                    early.make_if_due()

        run_some(todo)
        if further is not None:
            # What they take ran by now: a repeat of an earlier run may hold after all.
            for job in stale:
                if job.spec.get("optional") and not _holds_again(job):
                    (job.folder / "record.json").unlink(missing_ok=True)
            further.run(run_some)
    return ran


def _orders(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        return read_block(file)
    except BadInput:
        file.unlink(missing_ok=True)  # the next run writes it anew
        raise


def main(arguments: list[str] | None = None) -> int:
    """Run one block; 0 when all its records are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--attempt", type=int, default=1)
    parser.add_argument("--stamp", type=Path, help="written when all records are there")
    parser.add_argument("--state", default="", help="of the block: what the stamp is made for")
    given = parser.parse_args(arguments)
    end_on_signals()
    try:
        head, specs = _orders(given.block)
        paths = StudyPaths(results=given.results.resolve(), study=head["study"])
        jobs = [load_job(spec | {"about": head["about"]}, paths) for spec in specs]
        repetition = Repetition(jobs, deadline_of(head, jobs))
        with leased(paths, [(head["rule"], head["name"])]):
            ran = run_jobs(jobs, paths, given.attempt, repetition)
        if given.stamp is not None:
            stamp = {"state": given.state, "cells": len(jobs), "ran": ran}
            if repetition.has_optional_repeats:
                stamp |= {"stop_reasons": repetition.stop_reasons, "skipped_optional": repetition.skipped_optional()}
                stamp |= {"completed_optional": repetition.completed_optional()}
            stamp["limits"] = used_limits(specs[0]["cell_limits"])
            stamp["records_ns"] = newest_change(job.folder / "record.json" for job in jobs)
            write_atomic(given.stamp, json.dumps(stamp) + "\n")
    except Interruption as end:
        return end.code
    except FAULTS as error:
        return say_fault(error, given.results)
    lacks = dict.fromkeys(why for why in repetition.stop_reasons.values() if ": " in why)
    for why in list(lacks)[:_MOST_LACKS] if ran else ():
        say(f"[transect] not decided, {why}")
    needed = len(jobs) - len(repetition.skipped_optional())
    if ran < needed:
        say(f"[transect]         {head['name']}: {needed - ran} of {needed} {head['rule']} cells up to date")
    return 0


if __name__ == "__main__":
    code = main()
    # Leave without a last round of garbage collection.
    gc.freeze()
    sys.stderr.flush()
    os._exit(code)
