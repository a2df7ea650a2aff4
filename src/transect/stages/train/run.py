"""The train stage: ranks train, their series become one record, checked against the reference."""

from __future__ import annotations

import json

import numpy as np

from transect.domain.errors import Unsupported
from transect.domain.record import Cause
from transect.execution.job import Job, Result
from transect.execution.stage import RUNNERS
from transect.execution.stage_helpers import checksums, data_checksums, need, ranks
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.stages.train.result import merge
from transect.training.strategies import STRATEGIES
from transect.training.support import reason_to_skip
from transect.training.workloads import Parameters

__all__ = ["Train"]


@RUNNERS.register("train")
class Train:
    """Runs `transect.training.worker` on every rank."""

    measures = True

    def prepare(self, job: Job) -> tuple[str, Request]:
        """Ranks through the launcher that the strategy's rendezvous asks for."""
        if "reference" in job.spec["inputs"]:
            need(job, "reference")
        cell = job.cell
        reason = reason_to_skip(cell, Parameters.model_validate(job.spec["parameters"]))
        if reason is not None:
            raise Unsupported(reason)
        strategy = STRATEGIES.get(cell.strategy)
        arguments = ("--spec", job.spec_file, "--data", need(job, "data"), "--out", job.folder)
        command = job.module("transect.training.worker", *arguments)
        return ranks(job, command, strategy.rendezvous)

    def inputs(self, job: Job) -> list[str]:
        """Data, start and reference trajectory."""
        found = data_checksums(job, job.cell.repeat)
        if "reference" in job.spec["inputs"]:
            reference = job.input("reference")
            found += checksums(reference / "trajectory.npz", reference / "weights.npz")
        return found

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Merge the ranks' files; name the cause when a rank failed."""
        errors = [json.loads(p.read_text()) for p in sorted(job.folder.glob("rank-*.error.json"))]
        if errors:
            first = errors[0]
            return Result.failed(Cause(first["cause"]), f"rank {first['rank']}: {first['message']}")
        if outcome.code:
            return Result.failed(Cause.CRASH, f"exit code {outcome.code}")
        facts, series = [], []
        for rank in range(job.cell.ranks):
            try:
                facts.append(json.loads((job.folder / f"rank-{rank:03d}.json").read_text()))
                with np.load(job.folder / f"rank-{rank:03d}.npz") as file:
                    series.append({name: file[name] for name in file.files})
            except (OSError, ValueError) as error:
                return Result.failed(Cause.CRASH, f"rank {rank} left no series: {error}")
        return merge(job, facts, series)
