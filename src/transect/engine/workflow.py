"""What the Snakefile needs: the plan as plain look-ups, and the handlers of a run.

Snakemake parses the Snakefile once per call and once more in every cluster job; a job reads what
the main process planned, and plans nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from errno import EACCES
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

from transect.domain.errors import FAULTS, BadInput, say_fault
from transect.domain.paths import ROOT, StudyPaths
from transect.domain.terminal import say
from transect.engine import slurm_run
from transect.engine.abandoned import end_abandoned
from transect.engine.build_image import image_changed
from transect.engine.claim import Claim, cannot_write, check_environments
from transect.engine.flow_config import check_folder, read_options
from transect.engine.flow_facts import BlockFacts, FlowFacts, facts_of_plan, read_facts, write_facts
from transect.engine.follow import Follower
from transect.engine.interruption import watch_for_interruption
from transect.engine.plan_files import check_origin, planned_cells, write_plan
from transect.engine.progress import start_progress
from transect.engine.questions import check_questions
from transect.engine.settle import settle
from transect.engine.staleness import Staleness
from transect.engine.stamps import forget_broken_blocks, stamp_entry
from transect.engine.submissions import SUBMISSIONS
from transect.engine.unsaid import Unsaid
from transect.launch.processes import hear_children
from transect.planning.blocks import BLOCK_PATTERN, make_blocks
from transect.planning.plan import make_plan
from transect.planning.study import find_study, find_system

SESSION = "TRANSECT_SNAKEMAKE"
_FLOW = "TRANSECT_FLOW"


class Flow:
    """A planned study, as the rules see it. Paths are strings, as Snakemake wants them."""

    block_pattern = BLOCK_PATTERN

    def __init__(self, facts: FlowFacts, results: str, strict: bool) -> None:
        self.results, self.strict = results, strict
        self.folder, self.system_file = facts.folder, facts.system_file
        self.python = sys.executable
        self._facts = facts
        self._blocks = {(block.rule, block.name): block for block in facts.blocks}
        self._rules: dict[str, BlockFacts] = {}
        for block in facts.blocks:
            self._rules.setdefault(block.rule, block)

    def rules(self) -> list[str]:
        """Return the names of the rules that run blocks."""
        return list(self._rules)

    def local_rules(self) -> list[str]:
        """Return those whose blocks need no node."""
        return [rule for rule, block in self._rules.items() if block.local]

    def pattern(self, rule: str) -> str:
        """Return the output pattern of a rule: the stamp that says that all records are there.

        The records themselves are not declared: Snakemake would delete all of them when the
        block's job fails.
        """
        return f"{self.folder}/blocks/{rule}/{{block}}.json"

    def inputs(self, rule: str, block: str) -> list[str]:
        """Return the stamps of other blocks and of environments that the block's cells need."""
        return list(self._blocks[rule, block].inputs)

    def waits(self, rule: str, block: str) -> list[str]:
        """Return the stamps of blocks that run before it, and from which it takes nothing."""
        return list(self._blocks[rule, block].waits)

    def order(self, rule: str, block: str) -> int:
        """Return a priority: blocks run in the order of the plan."""
        return len(self._blocks) - self._blocks[rule, block].order

    def state(self, rule: str, block: str) -> str:
        """Return what changes when any cell of the block is to run again."""
        return self._blocks[rule, block].state

    def resources(self, rule: str) -> dict[str, Any]:
        """Return what a rule's jobs ask for, by name: a value, or what tells it of a job's wildcards.

        Snakemake takes ten times as long for what it has to ask for as for a value, in each job.
        """
        every = [block.resources for block in self._facts.blocks if block.rule == rule]
        return {
            name: value if all(one[name] == value for one in every) else self._teller(rule, name)
            for name, value in every[0].items()
        }

    def _teller(self, rule: str, name: str) -> Callable[[Any], Any]:
        def tell(wildcards: Any) -> Any:
            return self._blocks[rule, wildcards.block].resources[name]

        return self.often(tell)

    @staticmethod
    def often(function: Callable[..., Any]) -> Callable[..., Any]:
        """Have a function tell its arguments: Snakemake would find them out, several times for each job."""
        function.__signature__ = signature(function)  # type: ignore[attr-defined]
        return function

    def stamps(self) -> list[str]:
        """Return the stamps of all blocks."""
        return [f"{self.folder}/blocks/{rule}/{name}.json" for rule, name in self._blocks]

    def targets(self, workflow: Any) -> list[str]:
        """Return the stamps of all blocks; a dry run is told what would run.

        Only here Snakemake knows what it was called for; nothing is looked at before.
        """
        if workflow.dryrun:
            self.tell_dry_run()
        elif workflow.executor_plugin is not None and not workflow.touch:
            try:
                for folder in map(Path, (self.results, self.folder)):
                    if folder.exists() and not os.access(folder, os.W_OK, effective_ids=True):
                        raise PermissionError(EACCES, os.strerror(EACCES), str(folder))
                self.forget_other_states()
            except OSError as error:
                # Snakemake notices too, and says nothing of it where a profile has it quiet.
                _leave(cannot_write(Path(self.results), error))
            except BadInput as error:
                _leave(error)
        return self.stamps()

    def command(self) -> str:
        """Return the shell line of all blocks; Snakemake fills in which, and the attempt."""
        return (
            "{FLOW.python:q} -m transect.engine.run_block --results={FLOW.results:q} "
            "--block={FLOW.folder:q}/specs/{params.group}/{wildcards.block}.json "
            "--attempt={resources.attempt} --state={params.state} --stamp={output:q}"
        )

    def environment_stamp(self) -> str:
        """Return the output pattern of environments."""
        return f"{self.results}/environments/{{environment}}.json"

    def lock_hash(self, name: str) -> str:
        """Return an environment's lock hash."""
        return self._facts.environments[name]

    def report_state(self) -> str:
        """Return what makes the report stale besides its records."""
        return self._facts.report_state

    # Handlers of the main process: a job's own Snakemake has nothing to begin or to end.

    def start(self, jobs: Any) -> None:
        """Begin a run."""

    def finish(self) -> None:
        """End it."""

    def fail(self) -> None:
        """End it after a job failed."""

    def tell_dry_run(self) -> None:
        """Say what a run would do."""

    def forget_other_states(self) -> None:
        """Drop what was made for another state than the planned one."""


class MainFlow(Flow):
    """The flow of the process that planned."""

    def __init__(self, study: str, system: str, results: str, strict: bool, quiet: Collection[Any] = ()) -> None:
        self._unsaid = Unsaid(quiet)
        system_file = find_system(system)
        self._plan = make_plan(find_study(study), system_file, Path(results))
        check_folder(self._plan.paths.folder)
        self._moved = check_origin(self._plan.paths, self._plan.file)
        self._planned_blocks = make_blocks(self._plan)
        facts = facts_of_plan(self._plan, self._planned_blocks, system_file)
        super().__init__(facts, results, strict)
        self._claim = Claim(Path(self.results), self._plan.study.name)
        SUBMISSIONS.study, SUBMISSIONS.rules = self._plan.study.name, self.rules()
        self._follower = Follower(self._plan.paths)
        # On a scheduler cells run elsewhere: their lines are read from the journal.
        self._scheduled = self._plan.system.scheduler != "none"
        # In another user's results a dry run is welcome, and a run ends before its first job.
        with suppress(PermissionError):
            if not self._claim.held_by_another():
                forget_broken_blocks(self._plan, self._planned_blocks)

    def _lost_environments(self) -> Iterator[str]:
        """Yield the environments, and images, that were removed from the cache, or are in one that we cannot see."""
        for name in self._facts.environments:
            stamp = self._plan.paths.environment(name)
            try:
                facts = json.loads(stamp.read_text())
                lost = Path(facts["python"]).is_absolute() and not Path(facts["python"]).exists()
                lost = lost and facts["status"] == "ok" and not facts.get("wrap")
                lost = lost or image_changed(name, facts)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError):
                lost = True  # nobody can read it: it is made again
            if lost:
                yield name

    def forget_other_states(self) -> None:
        """Drop what was made for another state than the planned one: Snakemake makes it again.

        Snakemake knows that only in the folder from which it was made, and as long as that has its
        `.snakemake`.
        """
        if self._claim.held_by_another():
            return  # the run ends before its first job, and harms nothing of the other
        paths = self._plan.paths
        lost = list(self._lost_environments())
        check_environments(paths, self._facts.environments | dict.fromkeys(lost, "lost"))
        for name in lost:
            paths.environment(name).unlink(missing_ok=True)
        made = {paths.environment(name): lock for name, lock in self._facts.environments.items()}
        blocks = {paths.stamp(block.rule, block.name): block.state for block in self._facts.blocks}
        for key, states in (("lock_hash", made), ("state", blocks)):
            for stamp, state in states.items():
                if stamp.exists() and stamp_entry(stamp, key) != state:
                    stamp.unlink()
        # Where a block is missing the report is made again anyway.
        told = stamp_entry(paths.flow, "report_state") == self._facts.report_state
        told = told and stamp_entry(paths.summary, "counts") is not None
        # Only a run with a job writes the plan, and so whose results these are.
        told = told and self._moved is None and planned_cells(paths) is not None
        if not told and all(stamp.exists() for stamp in blocks):
            paths.summary.unlink(missing_ok=True)

    def start(self, jobs: Any) -> None:
        """Claim the study, write the plan, and begin the progress journal."""
        try:
            self._begin(jobs)
        except FAULTS as error:
            self.finish()
            _leave(error)

    def _begin(self, jobs: Any) -> None:
        self._unsaid.end()
        check_questions(self._plan.study, self._plan.file)
        self._claim.take()
        slurm_run.cancel_earlier(self._plan.paths.runs, self._plan.study.name)
        if SUBMISSIONS.run:
            slurm_run.begin(self._run_file(), SUBMISSIONS.job_names())
        if self._moved:
            say(f"[transect] {self._moved}")
        ended = end_abandoned(Path(self.results))
        if ended:
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
            told = f"{self._plan.left_out} cells that need a larger system are left out"
            say(f"[transect] {told}")
        if self._scheduled:
            self._follower.begin()

    def _run_file(self) -> Path:
        return self._plan.paths.runs / f"{SUBMISSIONS.run}.json"

    def finish(self) -> None:
        """Give everything back."""
        self._follower.end()
        if self._run_file().exists():
            slurm_run.end(self._run_file(), SUBMISSIONS.job_names())
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
            kinds = counts.setdefault(planned.cell.stage, Counter())
            kinds[reasons[0].kind] += 1
        for stage, kinds in counts.items():
            told = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
            say(f"[transect] {stage}: {kinds.total()} cells would run: {told}")
        if not counts:
            say("[transect] no cell would run")


def _leave(error: BaseException) -> NoReturn:
    """End the process with one message.

    Snakemake says nothing of it where a profile has it quiet.
    """
    code = say_fault(error)
    sys.stderr.flush()
    os._exit(code)


def open_flow(config: dict[str, Any], quiet: Collection[Any] = ()) -> Flow:
    """Make the plan, or end the process with one clear message and its exit code.

    `quiet`: what Snakemake's profile has it silent about.

    In a cluster job, whose Snakemake parses the Snakefile again, read what the main process
    planned, whatever was edited since.
    """
    hear_children()
    # Children run modules of this checkout in environments that do not have it installed.
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    try:
        results, strict = read_options(config)
        if SESSION in os.environ and _FLOW in os.environ:
            place = Path(os.environ[_FLOW])
            paths = StudyPaths(results=place.parent, study=place.name)
            return Flow(read_facts(paths), results, strict)
        names = str(config["study"]), str(config["system"])
        flow = MainFlow(*names, results, strict, quiet)
    except FAULTS as error:
        _leave(error)
    os.environ[SESSION] = f"{os.getpid()}:{os.uname().nodename}"
    os.environ[_FLOW] = str(Path(flow.folder).resolve())
    return flow
