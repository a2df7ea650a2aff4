"""Run the cells of one allocation: `python -m transect.execution.run_block --block FILE …`.

Cells run one after another in the order of the block's file; each record is written at once, so
that a block which is interrupted goes on with the missing ones. Exit code 0 means that every
record is there.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from contextlib import ExitStack
from pathlib import Path

from transect.domain.errors import TransectError
from transect.domain.files import write_atomic
from transect.domain.paths import StudyPaths
from transect.execution.allocation import open_guard, prepare_allocation
from transect.execution.job import Job, load_job
from transect.execution.payload import FULL, DiskFull
from transect.execution.progress import note_progress
from transect.execution.run_cell import end_on_signals, fingerprint_of, run_job, valid_record
from transect.execution.stages import STAGES

__all__ = ["main", "run_block"]


def _drop_stale(jobs: list[Job]) -> list[Job]:
    """Remove every record that no longer holds; return the cells that have to run.

    Before anything runs: a report that is made after a job was cut short must not show them.
    """
    todo = []
    for job in jobs:
        stage = STAGES.get(job.cell.stage)
        try:
            kept = valid_record(job, fingerprint_of(job, stage))
        except OSError:
            kept = None
        if kept is None:
            (job.folder / "record.json").unlink(missing_ok=True)
            todo.append(job)
    return todo


def run_block(jobs: list[Job], attempt: int) -> int:
    """Run all cells that have no valid record; return how many ran.

    Raises DiskFull when results cannot be written.
    """
    prepare_allocation()
    todo = _drop_stale(jobs)
    with ExitStack() as stack:
        guard = stack.enter_context(open_guard()) if todo else None
        for job in todo:
            record = run_job(job, attempt, guard)
            note_progress(job.paths, record)
    return len(todo)


def main(arguments: list[str] | None = None) -> int:
    """Run one block; 0 when all its records are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--attempt", type=int, default=1)
    parser.add_argument("--stamp", type=Path, help="written when all records are there")
    given = parser.parse_args(arguments)
    end_on_signals()
    try:
        block = json.loads(given.block.read_text(encoding="utf-8"))
        paths = StudyPaths(results=given.results.resolve(), study=block["study"])
        jobs = [load_job(paths.spec(stage, name), paths.results) for stage, name in block["cells"]]
        ran = run_block(jobs, given.attempt)
        if given.stamp is not None:
            write_atomic(given.stamp, json.dumps({"cells": len(jobs), "ran": ran}) + "\n")
    except TransectError as error:
        print(f"transect: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.errno not in FULL:
            raise
        print(f"transect: {given.results}: {error}", file=sys.stderr)
        return DiskFull.exit_code
    print(f"[transect] {ran} of {len(jobs)} cells ran, the others still held", file=sys.stderr)
    return 0


if __name__ == "__main__":
    code = main()
    gc.freeze()
    sys.exit(code)
