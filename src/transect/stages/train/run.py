"""The train stage: ranks train, their series become one record, checked against the reference."""

from __future__ import annotations

import json
import re
import zipfile
from importlib import import_module
from types import ModuleType

from transect.domain.axes.train import TrainCell
from transect.domain.errors import Unsupported
from transect.domain.mpi_libraries import chosen_mpi, contradiction
from transect.domain.record import Cause
from transect.engine.job import Job, Result, cell_of
from transect.engine.stage_helpers import StageRunner, need, ranks
from transect.engine.turns import Turns
from transect.launch import Request
from transect.launch.processes import Outcome
from transect.stages.train.result import merge
from transect.stages.train.result_times import WARMUP_STEPS
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles
from transect.training.own_workload import SPEC_KEY
from transect.training.rank_files import rank_place, read_places, read_rank
from transect.training.raw_arrays import describe_npz
from transect.training.restarts import RESTARTS
from transect.training.strategies import STRATEGIES
from transect.training.support import reason_to_skip
from transect.training.trainer_plan import write_trainer_plan
from transect.training.workloads import Parameters

# The input of a trainer in another language; missing where ranks run our worker.
_PLAN = "trainer-plan.json"
# What Open MPI's mpiexec, a rank's parent (launch/parent.py) and srun say of one that died by a signal.
_DEAD_RANK = re.compile(
    r"noticed that process rank (\d+) with PID|transect: rank (\d+) on \S+ was ended by signal"
    r"|srun: error: \S+: task (\d+): "
)


def _scripts(job: Job) -> ModuleType | None:
    """Return what runs a study's own script, if the cell has one. By its name: no other cell depends on it."""
    own = "scripts" in job.spec.get(SPEC_KEY, {})
    return import_module("transect.stages.train.script") if own else None


class TrainRunner(StageRunner):
    """Runs the payload, or a trainer's own program, on every rank."""

    energy = True

    def prepare(self, job: Job) -> tuple[str, Request]:
        """Ranks through the launcher that the strategy's rendezvous asks for."""
        if (scripts := _scripts(job)) is not None:
            prepared: tuple[str, Request] = scripts.prepare(job)
            return prepared
        if "reference" in job.spec["inputs"]:
            need(job, "reference")
        cell = cell_of(job, TrainCell)
        parameters = Parameters.model_validate(job.spec["parameters"])
        reason = reason_to_skip(cell, parameters)
        if reason is not None:
            raise Unsupported(reason)
        worker = self.command(job)
        strategy = STRATEGIES.get(cell.strategy)
        states = job.input("reference") / RESTARTS if "reference" in job.spec["inputs"] else None
        files = RankFiles(plan=job.folder / _PLAN, out=job.folder, programs=job.bin, cell=cell, worker=tuple(worker))
        framework = FRAMEWORKS.get(cell.framework)
        files.plan.unlink(missing_ok=True)
        if not isinstance(framework, ProgramFramework):
            return ranks(job, worker, strategy.rendezvous, chosen_mpi(cell.options))
        command = framework.command(files)
        write_trainer_plan(cell, parameters, need(job, "data"), files, states)
        return ranks(job, command, strategy.rendezvous)

    def turns(self, job: Job) -> Turns | None:
        """All ranks take turns, between two steps.

        Not those that do not step together, whose next step another one's may wait for; nor where threads read ahead.
        """
        cell = cell_of(job, TrainCell)
        if _scripts(job) is not None:
            return None
        framework = FRAMEWORKS.get(cell.framework)
        able = framework.takes_turns if isinstance(framework, ProgramFramework) else True
        if not able or cell.input == "files" or STRATEGIES.get(cell.strategy).unchecked(cell) is not None:
            return None
        epochs, samples = describe_npz(job.input("data") / f"start-{cell.repeat}.npz")["order"]["shape"]
        return Turns(connections=cell.ranks, iterations=epochs * (samples // cell.batch), warmup=WARMUP_STEPS)

    def who(self, job: Job, outcome: Outcome) -> str:
        """Name the rank: by its process, or by what the launcher says of it."""
        if (scripts := _scripts(job)) is not None:
            return str(scripts.who(job))
        places = read_places(job.folder)
        for place in places:
            if place["pid"] == outcome.pid:
                return rank_place(place["rank"], places)
        log = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
        match = _DEAD_RANK.search(log)
        return rank_place(int(match[1] or match[2] or match[3]), places) if match else ""

    def _silent(self, job: Job, outcome: Outcome) -> Result:
        """Return the failure of ranks that wrote no error file: the log may have the cause, in the runtime's words."""
        log = job.log.read_text(encoding="utf-8", errors="replace") if job.log.exists() else ""
        framework = FRAMEWORKS.get(cell_of(job, TrainCell).framework)
        pattern = framework.says_no_memory if isinstance(framework, ProgramFramework) else ""
        found = re.search(pattern, log, re.M) if pattern else None
        if found is not None:
            return Result.failed(Cause.OUT_OF_MEMORY, f"exit code {outcome.code}: {found[0]}")
        if (words := last_words(log)) is not None:
            return Result.failed(*words)
        return Result.failed(Cause.CRASH, f"exit code {outcome.code}")

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Merge the ranks' files; name the cause when a rank failed."""
        if (scripts := _scripts(job)) is not None:
            made: Result = scripts.collect(job, outcome)
            return made
        errors = [json.loads(p.read_text()) for p in sorted(job.folder.glob("rank-*.error.json"))]
        if errors:
            # The others' may be no more than that it has gone.
            first = min(errors, key=lambda error: error.get("at", 0.0))
            who = rank_place(first["rank"], read_places(job.folder))
            cause = Cause(first["cause"])
            # Found out when the model was made: no fault.
            ended = Result.skipped if cause is Cause.UNSUPPORTED else Result.failed
            return ended(cause, f"{who}: {first['message']}")
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
        mpi = chosen_mpi(cell_of(job, TrainCell).options)
        for each in facts:
            if (another := contradiction(mpi, each["libraries"].get("mpi", ""))) is not None:
                return Result.failed(Cause.WRONG_RESULT, another)
        return merge(job, facts, series)


# A goroutine's panic, or what the runtime finds, ends the process at once: no code of the program's is asked.
_END = re.compile(r"^(?:panic: |fatal error: |runtime: out of memory)")
_MEMORY = re.compile(r"out of memory|cannot allocate memory|cannot map pages")
# Where the goroutine was: the first function of its own, and its file.
_GOROUTINE = re.compile(r"^goroutine \d+.*\[running")
_FILE = re.compile(r"^\s+(\S+\.go:\d+)")
_RUNTIME = ("runtime.", "panic(", "runtime:")
_MAX_LINES = 60
# What Open MPI's mpiexec says of the rank that ended first.
_RANK = re.compile(r"Process name: \[\S+?,\s*(\d+)\]\s+Exit code")


def last_words(log: str) -> tuple[Cause, str] | None:
    """Return the cause and the first lines of a death in Go, or None where the log has none.

    >>> last_words("x\\npanic: boom\\n\\ngoroutine 7 [running]:\\nmain.f()\\n\\tmain.go:3 +0x1\\n")
    (<Cause.CRASH: 'crash'>, 'panic: boom, in main.f() (main.go:3)')
    """
    lines = log.splitlines()
    at = next((number for number, line in enumerate(lines) if _END.match(line)), None)
    if at is None:
        return None
    first = lines[at].strip()
    tail = lines[at + 1 : at + _MAX_LINES]
    cause = Cause.CRASH
    if first.startswith(("fatal error: ", "runtime: ")) and _MEMORY.search(first):
        cause = Cause.OUT_OF_MEMORY
    match = _RANK.search(log)
    who = f"rank {match[1]}: " if match else ""
    return cause, f"{who}{first}{_place(tail)}"


def _place(tail: list[str]) -> str:
    running = next((n for n, line in enumerate(tail) if _GOROUTINE.match(line)), None)
    if running is None:
        return ""
    for function, file in zip(tail[running + 1 :], tail[running + 2 :], strict=False):
        found = _FILE.match(file)
        if found and not function.startswith((*_RUNTIME, " ", "\t")):
            return f", in {function} ({found[1]})"
    return ""
