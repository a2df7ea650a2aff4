"""The bench stage: a benchmark runs, and its log is read like any other."""

from __future__ import annotations

from pathlib import Path

from transect.domain.axes.bench import BenchCell
from transect.domain.errors import MissingDependency
from transect.domain.record import Cause
from transect.engine.job import Job, Result, cell_of
from transect.engine.stage_helpers import StageRunner, facts_of, over_subscribed, ranks
from transect.engine.turns import Turns
from transect.hpc.benchmarks.base import BENCHMARKS, Benchmark
from transect.hpc.ingest import ingest
from transect.launch import Request
from transect.launch.launchers.mpiexec import find_mpiexec, mpiexec_prefix, on_this_node
from transect.launch.processes import Outcome
from transect.measure.turn_series import by_turns
from transect.stages.ingest.result import result_of

# A run of a kernel takes some 0.01 to 1 s.
TURN_S = 0.2


def _program(job: Job, benchmark: Benchmark) -> str:
    """Return what the benchmark runs: its program, or the Python of its environment.

    Raises MissingDependency when its program is neither here nor brought along.
    """
    cell = cell_of(job, BenchCell)
    names = benchmark.programs(cell)
    if not names:
        return job.python
    if job.spec["system"].get("program"):
        # Looked up by each rank, after modules are loaded or inside the image.
        return names[0]
    found = benchmark.find(cell)
    if found is None:
        command = benchmark.install_for(cell)
        how = f"`{command}`" if command else "install it"
        raise MissingDependency(
            f"{' or '.join(names)} is not on PATH: {how}, or name modules or an image for "
            f"'{cell.benchmark}' under `benchmarks` in the system file"
        )
    return found


class BenchRunner(StageRunner):
    """Runs a registered benchmark."""

    def prepare(self, job: Job) -> tuple[str, Request]:
        """All ranks through the system's launcher, or one process that starts mpiexec itself."""
        cell = cell_of(job, BenchCell)
        benchmark = BENCHMARKS.get(cell.benchmark)
        program = _program(job, benchmark)
        if benchmark.by_launcher(cell):
            command = benchmark.command(cell, job.folder, program, [])
            return ranks(job, command, benchmark.rendezvous, benchmark.mpi(cell))
        mpiexec = find_mpiexec(job.bin)
        prefix = mpiexec_prefix(mpiexec) if mpiexec else []
        wrap, variables = job.wrap()
        if job.cell.nodes == 1:
            variables = on_this_node() | variables
        command = benchmark.command(cell, job.folder, program, prefix)
        return "plain", Request(command=command, threads=job.cell.threads, bin=job.bin, wrap=wrap, variables=variables)

    def turns(self, job: Job) -> Turns | None:
        """What a benchmark runs again and again, if it can wait in between."""
        cell = cell_of(job, BenchCell)
        benchmark = BENCHMARKS.get(cell.benchmark)
        # Each rank waits, where they are the benchmark's own.
        connections = cell.ranks if benchmark.by_launcher(cell) else 1
        return Turns(connections=connections, seconds=TURN_S) if benchmark.turns_by else None

    def inputs(self, job: Job) -> list[str]:
        """Files from outside; else a benchmark makes its own input."""
        paths = [Path(given) for given in job.spec.get("files", ())]
        return [f"{path.name} {facts_of(path, job.paths) if path.exists() else 'absent'}" for path in paths]

    def collect(self, job: Job, outcome: Outcome) -> Result:
        """Ingest the benchmark's logs."""
        cell = cell_of(job, BenchCell)
        benchmark = BENCHMARKS.get(cell.benchmark)
        if outcome.code:
            return _ended(job, benchmark, outcome.code)
        # Its own parser alone: an edit of another one is no reason to run it again.
        runs = ingest(benchmark.logs(job.folder), benchmark.parser)
        wrong = [text for run in runs if run.status == "ok" and (text := benchmark.contradicts(cell, run)) is not None]
        if wrong:
            return Result.failed(Cause.WRONG_RESULT, wrong[0])
        result = result_of(runs, must_have=True)
        if job.turns is not None and runs[0].status == "ok":
            values = benchmark.iterations(runs[0])
            result.details["turns"], _ = by_turns(job.turns, benchmark.turns_by, seconds=values)
        if over_subscribed(job):
            result.details["over_subscribed"] = True
        return result


def _ended(job: Job, benchmark: Benchmark, code: int) -> Result:
    """Return the result of an exit code other than 0, as the benchmark reads its log."""
    verdict = benchmark.verdict(job.folder, code)
    if verdict is None:
        return Result.failed(Cause.CRASH, f"exit code {code}")
    cause, text = verdict
    make = Result.skipped if cause is Cause.MISSING_DEPENDENCY else Result.failed
    return make(cause, text)
