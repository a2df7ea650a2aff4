"""The train stage: ranks train, their series become one record, checked against the reference."""

from __future__ import annotations

import json
import re
import zipfile

from transect.domain.axes.train import MEMORY_PLAN
from transect.domain.errors import Unsupported
from transect.domain.record import Cause
from transect.engine.job import Job, Result
from transect.engine.stage import RUNNERS
from transect.engine.stage_helpers import checksums, data_checksums, need, ranks
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.stages.train.result import merge
from transect.stages.train.run_last_words import last_words
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles
from transect.training.rank_files import rank_place, read_places, read_rank
from transect.training.restarts import RESTARTS
from transect.training.strategies import STRATEGIES
from transect.training.support import reason_to_skip
from transect.training.trainer_plan import write_trainer_plan
from transect.training.workloads import Parameters

# What a trainer in another language is told; not there when ranks run our worker.
_PLAN = "trainer-plan.json"
# What Open MPI's mpiexec, a rank's parent (launch/parent.py) and srun say of one that died by a signal.
_TOLD = re.compile(
    r"noticed that process rank (\d+) with PID|transect: rank (\d+) on \S+ was ended by signal"
    r"|srun: error: \S+: task (\d+): "
)


@RUNNERS.register("train")
class Train:
    """Runs `transect.stages.train.worker` on every rank."""

    measures = True
    energy = True

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
        arguments = ["--spec", job.spec_file, "--data", data, "--out", job.folder]
        states = job.input("reference") / RESTARTS if "reference" in job.spec["inputs"] else None
        if states is not None:
            arguments += ["--restarts", states]
        if "memory" in job.spec["inputs"]:
            arguments += ["--memory-plan", need(job, "memory") / MEMORY_PLAN]
        worker = job.module("transect.stages.train.worker", *arguments)
        files = RankFiles(plan=job.folder / _PLAN, out=job.folder, programs=job.bin, cell=cell, worker=tuple(worker))
        framework = FRAMEWORKS.get(cell.framework)
        files.plan.unlink(missing_ok=True)
        if not isinstance(framework, ProgramFramework):
            return ranks(job, worker, strategy.rendezvous)
        command = framework.command(files)
        write_trainer_plan(cell, parameters, data, files, states)
        return ranks(job, command, strategy.rendezvous)

    def who(self, job: Job, outcome: Outcome) -> str:
        """Name the rank: by its process, or by what the launcher says of it."""
        places = read_places(job.folder)
        for place in places:
            if place["pid"] == outcome.pid:
                return rank_place(place["rank"], places)
        log = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
        told = _TOLD.search(log)
        return rank_place(int(told[1] or told[2] or told[3]), places) if told else ""

    def inputs(self, job: Job) -> list[str]:
        """Data, start and reference trajectory, and the plan of its memory."""
        found = data_checksums(job, job.cell.repeat)
        if "reference" in job.spec["inputs"]:
            reference = job.input("reference")
            names = ("trajectory.npz", "weights.npz", RESTARTS)
            found += checksums(*(reference / name for name in names))
        if "memory" in job.spec["inputs"]:
            found += checksums(job.input("memory") / MEMORY_PLAN)
        return found

    def _silent(self, job: Job, outcome: Outcome) -> Result:
        """Return what became of ranks that left no word: of some the runtime itself says in the log."""
        log = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
        framework = FRAMEWORKS.get(job.cell.framework)
        said = framework.says_no_memory if isinstance(framework, ProgramFramework) else ""
        found = re.search(said, log, re.M) if said else None
        if found is not None:
            return Result.failed(Cause.OUT_OF_MEMORY, f"exit code {outcome.code}: {found[0]}")
        if (words := last_words(log)) is not None:
            return Result.failed(*words)
        return Result.failed(Cause.CRASH, f"exit code {outcome.code}")

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Merge the ranks' files; name the cause when a rank failed."""
        errors = [json.loads(p.read_text()) for p in sorted(job.folder.glob("rank-*.error.json"))]
        if errors:
            # The others' may be no more than that it has gone.
            first = min(errors, key=lambda one: one.get("at", 0.0))
            who = rank_place(first["rank"], read_places(job.folder))
            return Result.failed(Cause(first["cause"]), f"{who}: {first['message']}")
        if outcome.code:
            return self._silent(job, outcome)
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
