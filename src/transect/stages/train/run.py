"""The train stage: ranks train, their series become one record, checked against the reference."""

from __future__ import annotations

import json
import zipfile

from transect.domain.errors import Unsupported
from transect.domain.record import Cause
from transect.execution.job import Job, Result
from transect.execution.stage import RUNNERS
from transect.execution.stage_helpers import checksums, data_checksums, need, ranks
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.stages.train.result import merge
from transect.training.frameworks import FRAMEWORKS, RankFiles
from transect.training.rank_files import read_rank
from transect.training.restarts import RESTARTS
from transect.training.strategies import STRATEGIES
from transect.training.support import reason_to_skip
from transect.training.trainer_plan import write_trainer_plan
from transect.training.workloads import Parameters

__all__ = ["Train"]

# What a trainer in another language is told; not there when ranks run our worker.
_PLAN = "trainer-plan.json"


@RUNNERS.register("train")
class Train:
    """Runs `transect.stages.train.worker` on every rank."""

    measures = True

    def prepare(self, job: Job) -> tuple[str, Request]:
        """Ranks through the launcher that the strategy's rendezvous asks for."""
        if "reference" in job.spec["inputs"]:
            need(job, "reference")
        cell = job.cell
        parameters = Parameters.model_validate(job.spec["parameters"])
        reason = reason_to_skip(cell, parameters)
        if reason is not None:
            raise Unsupported(reason)
        strategy = STRATEGIES.get(cell.strategy)
        data = need(job, "data")
        files = RankFiles(plan=job.folder / _PLAN, out=job.folder, programs=job.bin)
        # A framework from before there were commands has none.
        give = getattr(FRAMEWORKS.get(cell.framework), "command", None)
        command = give(files) if give is not None else None
        files.plan.unlink(missing_ok=True)
        if command is not None:
            write_trainer_plan(cell, parameters, data, files)
        else:
            arguments = ["--spec", job.spec_file, "--data", data, "--out", job.folder]
            if "reference" in job.spec["inputs"]:
                arguments += ["--restarts", job.input("reference") / RESTARTS]
            command = job.module("transect.stages.train.worker", *arguments)
        return ranks(job, command, strategy.rendezvous)

    def inputs(self, job: Job) -> list[str]:
        """Data, start and reference trajectory."""
        found = data_checksums(job, job.cell.repeat)
        if "reference" in job.spec["inputs"]:
            reference = job.input("reference")
            names = ("trajectory.npz", "weights.npz", RESTARTS)
            found += checksums(*(reference / name for name in names))
        return found

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Merge the ranks' files; name the cause when a rank failed."""
        errors = [json.loads(p.read_text()) for p in sorted(job.folder.glob("rank-*.error.json"))]
        if errors:
            first = errors[0]
            return Result.failed(Cause(first["cause"]), f"rank {first['rank']}: {first['message']}")
        if outcome.code:
            return Result.failed(Cause.CRASH, f"exit code {outcome.code}")
        path = job.folder / _PLAN
        plan = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        facts, series = [], []
        for rank in range(job.cell.ranks):
            try:
                rank_facts, rank_series = read_rank(job.folder, rank, plan)
            except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
                return Result.failed(Cause.CRASH, f"rank {rank} left no result: {error}")
            facts.append(rank_facts)
            series.append(rank_series)
        return merge(job, facts, series)
