"""The flow of the process that plans: what is stale, and the handlers of a run.

Snakemake goes by stamps and their times alone. What is stale is ours to know, and a run drops the stamps of it
before Snakemake looks.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from errno import EACCES, ENOTDIR
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from transect.adapters.snakemake.finalize import settle
from transect.adapters.snakemake.flow import Flow, facts_of_plan, read_facts, write_facts
from transect.domain.errors import FAULTS, BadInput, say_fault
from transect.domain.owner import SESSION, Owner, hear_children
from transect.domain.paths import PYTHONPATH, StudyPaths
from transect.domain.terminal import printable, say
from transect.engine import submissions
from transect.engine.build_image import lost
from transect.engine.claim import Claim, cannot_write, check_environments
from transect.engine.environment_use import note_uses
from transect.engine.interruption import end_abandoned, watch_for_interruption
from transect.engine.plan_files import check_origin, planned_cells, write_plan
from transect.engine.progress import EarlyReport, Journal, start_progress, tell
from transect.engine.questions import check_questions
from transect.engine.staleness import Staleness, stale_stamps, stamp_entry
from transect.engine.submissions import SUBMISSIONS
from transect.planning.blocks import make_blocks
from transect.planning.plan import make_plan
from transect.planning.study import find_study, find_system

_FLOW = "TRANSECT_FLOW"
_DEFAULTS: dict[str, Any] = {"study": "quick", "system": "laptop", "results": "results", "strict": False}
# Between two looks at the journal of cells that run elsewhere.
_POLL_S = 1.0


class _Follower:
    """Prints one line for each cell that a job on another node finished, and makes early reports."""

    def __init__(self, paths: StudyPaths) -> None:
        self._journal, self._early, self._stop = Journal(paths), EarlyReport(paths), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.wait(_POLL_S):
            self._print_new()

    def _print_new(self) -> None:
        rows = self._journal.read()
        for row in rows:
            tell(row)
        if rows:
            self._early.make_if_due()
            say(f"[transect]         {self._journal.line()}")

    def end(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)
        self._print_new()


def read_options(config: dict[str, Any]) -> tuple[str, str, str, bool]:
    """Return study, system, results folder and whether the run is strict, as configured. Raises BadInput."""
    for key in config.keys() - _DEFAULTS.keys():
        raise BadInput(f"config: unknown key '{key}'. Known: {', '.join(sorted(_DEFAULTS))}")
    config = _DEFAULTS | config
    for key in ("study", "system", "results"):
        given = config[key]
        if not isinstance(given, str) or printable(given) != given:
            raise BadInput(f"config: key '{key}': expected one line of text, found {given!r}: write {key}=./NAME")
    strict = str(config["strict"]).lower()
    if strict not in ("true", "false"):
        raise BadInput(f"config: key 'strict': expected true or false, found {config['strict']!r}")
    if set("{}<>") & set(config["results"]):
        raise BadInput(f"config: key 'results': {config['results']}: braces and < > mean something else to Snakemake")
    return config["study"], config["system"], str(Path(config["results"])), strict == "true"


class MainFlow(Flow):
    """The flow of the process that planned. `workflow` is Snakemake's."""

    def __init__(self, study: str, system: str, results: str, strict: bool, workflow: Any) -> None:
        self._plan = make_plan(find_study(study), find_system(system), Path(results))
        self._moved = check_origin(self._plan.paths, self._plan.file)
        self._planned_blocks = make_blocks(self._plan)
        super().__init__(facts_of_plan(self._plan, self._planned_blocks), results, strict)
        self._workflow, self._looked = workflow, False
        self._claim = Claim(Path(self.results), self._plan.study.name)
        SUBMISSIONS.study, SUBMISSIONS.rules = self._plan.study.name, self.rules()
        # Snakemake has imported every executor that there is.
        if executor := sys.modules.get("snakemake_executor_plugin_slurm_robust"):
            vars(executor)["RUN"] = SUBMISSIONS
        self._follower: _Follower | None = None
        # On a scheduler cells run elsewhere: their lines are read from the journal.
        self._scheduled = self._plan.system.scheduler != "none"

    def look(self) -> None:
        """Drop the stamps of what is stale, in a run; else have Snakemake count them as dropped.

        Asked by the rules' inputs: sooner Snakemake does not know what it was called for.
        """
        if self._looked or self._workflow.touch:
            return
        self._looked = True
        try:
            if self._runs:
                self._check_writable()
            # In the results of a run that lives a run ends before its first job, and harms nothing of the other.
            for stamp in [] if self._claim.held_by_another() else self.stale():
                # Not in a dry run in somebody else's results: Snakemake would end at it.
                if self._runs or os.access(stamp, os.W_OK, effective_ids=True):
                    # Where a call names a file, Snakemake has seen already that it is there.
                    self._workflow.dag.forcefiles.add(str(stamp))
                if self._runs:
                    stamp.unlink(missing_ok=True)
        except OSError as error:
            _leave(cannot_write(Path(self.results), error))
        except BadInput as error:
            _leave(error)
        if self._workflow.dryrun:
            self.tell_dry_run()

    @cached_property
    def _runs(self) -> bool:
        return self._workflow.executor_plugin is not None and not self._workflow.dryrun

    def _check_writable(self) -> None:
        folder = Path(self.folder)
        there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        if not os.access(there, os.W_OK, effective_ids=True) or not there.is_dir():
            number = EACCES if there.is_dir() else ENOTDIR
            raise OSError(number, os.strerror(number), str(there))

    def stale(self) -> Iterator[Path]:
        """Yield the stamps that Snakemake is not to go by: of another state than the planned one, or broken.

        In a run raises BadInput where another study uses another state of an environment just now.
        """
        paths, locks = self._plan.paths, self._facts.environments
        gone = {name for name in locks if lost(name, paths.environment(name))}
        if self._runs:
            check_environments(paths, locks | dict.fromkeys(gone, "lost"))
        for name, lock in locks.items():
            stamp = paths.environment(name)
            if name in gone or (stamp.exists() and stamp_entry(stamp, "lock_hash") != lock):
                yield stamp
        blocks = list(stale_stamps(self._plan, self._planned_blocks, (block.state for block in self._facts.blocks)))
        yield from blocks
        current = stamp_entry(paths.flow, "report_state") == self._facts.report_state
        current = current and stamp_entry(paths.summary, "counts") is not None
        # Only a run with a job writes the plan, and so whose results these are.
        current = current and self._moved is None and planned_cells(paths) is not None
        # Where a block is missing the report is made again anyway.
        if not current and not blocks and all(Path(stamp).exists() for stamp in self.stamps()):
            yield paths.summary

    def start(self, jobs: Any) -> None:
        """Claim the study, write the plan, and begin the progress journal."""
        try:
            self._begin(jobs)
        except FAULTS as error:
            self.finish()
            _leave(error)

    def _begin(self, jobs: Any) -> None:
        check_questions(self._plan.study, self._plan.file)
        self._claim.take()
        note_uses(self._plan, self._facts.environments)
        submissions.cancel_earlier(self._plan.paths.runs, self._plan.study.name)
        if SUBMISSIONS.run:
            submissions.begin(self._run_file(), SUBMISSIONS.job_names())
        if self._moved:
            say(f"[transect] {self._moved}")
        if ended := end_abandoned(Path(self.results)):
            say(f"[transect] ended {ended} runners that a killed run left")
        watch_for_interruption()
        write_plan(self._plan, self._planned_blocks)
        write_facts(self._plan.paths, self._facts)
        wanted = {str(path) for job in jobs for path in job.output}
        stale = Staleness(self._plan)
        todo: Counter[str] = Counter()
        for block in self._planned_blocks:
            if str(self._plan.paths.stamp(block.rule, block.name)) in wanted:
                todo.update(p.cell.stage for p in block.cells if stale.of(p))
        start_progress(self._plan.paths, dict(todo))
        if todo and self._plan.left_out:
            say(f"[transect] {self._plan.left_out} cells that need a larger system are left out")
        if self._scheduled:
            self._follower = _Follower(self._plan.paths)

    def _run_file(self) -> Path:
        return self._plan.paths.runs / f"{SUBMISSIONS.run}.json"

    def finish(self) -> None:
        """Give everything back."""
        if self._follower is not None:
            self._follower.end()
        if self._run_file().exists():
            submissions.end(self._run_file(), SUBMISSIONS.job_names())
        self._claim.give_back()

    def fail(self) -> None:
        """Settle what jobs left without a record, make the report all the same, and finish."""
        try:
            if not SUBMISSIONS.interrupted:
                settle(self._plan, self._planned_blocks)
        finally:
            self.finish()

    def tell_dry_run(self) -> None:
        """Say how many cells of each stage would run, and why."""
        counts: dict[str, Counter[str]] = {}
        for planned, reasons in Staleness(self._plan):
            counts.setdefault(planned.cell.stage, Counter())[reasons[0].kind] += 1
        for stage, kinds in counts.items():
            counted = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
            say(f"[transect] {stage}: {kinds.total()} cells would run: {counted}")
        if not counts:
            say("[transect] no cell would run")


def _leave(error: BaseException) -> NoReturn:
    """End the process with one message: Snakemake would add where in the Snakefile it was raised."""
    code = say_fault(error)
    sys.stderr.flush()
    os._exit(code)


def _attach(workflow: Any, name: str, ours: Callable[[], None]) -> None:
    """Have Snakemake call `ours` at onstart, onsuccess or onerror, and then what the workflow declares of its own.

    A Snakefile's statement would be replaced by a later one, and is not heeded in one that is a module of another.
    """

    def both(theirs: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(log: Any) -> None:
            ours()
            theirs(log)

        return call

    declare = getattr(workflow, name)
    setattr(workflow, f"_{name}", both(getattr(workflow, f"_{name}")))
    setattr(workflow, name, lambda theirs: declare(both(theirs)))


def open_flow(config: dict[str, Any], workflow: Any) -> Flow:
    """Make the plan, or end the process with one clear message and its exit code.

    In a cluster job, whose Snakemake parses the Snakefile again, read what the main process
    planned, whatever was edited since.
    """
    # A graph of thousands of jobs is all live objects: collecting them again and again finds nothing
    # and costs time in every call (docs/speed.md).
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    hear_children()
    # Children run modules of this transect in environments that do not have it installed.
    os.environ["PYTHONPATH"] = PYTHONPATH
    try:
        study, system, results, strict = read_options(config)
        if "onstart" in vars(workflow):
            raise BadInput(f"study {study}: this workflow has a study of transect already: run Snakemake once for each")
        if SESSION in os.environ and _FLOW in os.environ:
            place = Path(os.environ[_FLOW])
            paths = StudyPaths(results=place.parent, study=place.name)
            return Flow(read_facts(paths), results, strict)
        flow = MainFlow(study, system, results, strict, workflow)
        for path in (flow.environment_stamp(), f"{flow.folder}/report.html"):
            if (moved := str(workflow.modifier.modify_path(path))) != path:
                raise BadInput(f"a module's prefix moves {path} to {moved}: name the folder by `results` in its config")
    except FAULTS as error:
        _leave(error)
    os.environ[SESSION] = Owner.me().text
    os.environ[_FLOW] = str(Path(flow.folder).resolve())
    _attach(workflow, "onstart", lambda: flow.start(workflow.dag.needrun_jobs()))
    _attach(workflow, "onsuccess", flow.finish)
    _attach(workflow, "onerror", flow.fail)
    return flow
