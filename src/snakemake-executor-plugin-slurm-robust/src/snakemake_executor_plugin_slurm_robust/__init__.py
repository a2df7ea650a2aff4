"""Snakemake's Slurm executor with the defects mended that lose or repeat work.

Everything that is not named here is the stock plug-in's: submission, resources, cancelling.
"""

# No postponed annotations here: Snakemake reads the settings' types as objects.
import asyncio
import re
import shlex
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import snakemake_executor_plugin_slurm as stock
from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings as SlurmSettings
from snakemake_executor_plugin_slurm import common_settings, efficiency_report
from snakemake_interface_common.exceptions import WorkflowError

from snakemake_executor_plugin_slurm_robust import _slurm

__all__ = ["RUN", "Executor", "ExecutorSettings", "Run", "common_settings"]

# Refusals that pass: limits on queued jobs, a controller that restarts or is busy.
_PASSING = re.compile(
    r"MaxSubmit|MaxJob|QOSMax|AssocMax|AssocGrp|QOSGrp|job violates accounting/QOS policy"
    r"|unable to contact slurm controller|Unable to contact|Socket timed out|Connection refused"
    r"|temporarily unable|Resource temporarily unavailable|Zero Bytes were transmitted"
    r"|Job submit limit|too many jobs|Transport endpoint|Slurm backup controller"
    r"|Unexpected message received|connection failure",
    re.IGNORECASE,
)


@dataclass
class Run:
    """What the executor and the handlers of a workflow share: one run of Snakemake is one process.

    `failed` holds the last message of each job that failed or was refused, by its rule and wildcard `block`. `run` is
    what the executor calls the run, "" before it has begun.
    """

    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    run: str = ""
    rules: list[str] = field(default_factory=list)

    def job_name(self, rule: str) -> str:
        """Return a job's name in the queue, such as `train.1a2b3c4d`: slurmdbd keeps 255 characters of it."""
        return f"{rule[:120] if rule in self.rules else 'job'}.{self.run[:100]}"

    def job_names(self) -> list[str]:
        """Return all names that jobs of this run may have: by these Slurm is asked for them."""
        return [self.job_name(rule) for rule in (*self.rules, "job")]


# A workflow may put an object of its own here.
RUN: Any = Run()


_FORGOTTEN_S = 300
_ask_states = stock.query_job_status
# While sacct does not answer, the controller is asked: of all jobs of this user, whatever their names.
_CONTROLLER = "squeue --me --states=all --noheader --format='%i|%T'"
_SACCT_AGAIN_S = 300
# Jobs that Slurm named in its last answer: nobody has to ask for them one by one.
_named: set[str] = set()


class _Sacct:
    """Whether sacct answers: not while slurmdbd is down, though all jobs go on."""

    silent_until = 0.0

    @classmethod
    def silent(cls) -> bool:
        """Tell whether it did not answer lately."""
        return time.monotonic() < cls.silent_until


def _can_ask(tool: str) -> bool:
    """Keep the stock plug-in from calls of a silent sacct that have no bound: the nodes of a lost job."""
    return not (tool == "sacct" and _Sacct.silent()) and bool(_is_there(tool))


async def _states(command: str, logger: Any) -> tuple[dict[str, str] | None, float | None]:
    if command.startswith("sacct"):
        if not _Sacct.silent():
            states, seconds = await _ask_states(command, logger)
            if states is not None:
                return states, seconds
            _Sacct.silent_until = time.monotonic() + _SACCT_AGAIN_S
            text = "sacct does not answer (is slurmdbd down?): states of jobs come from squeue; sacct is asked again"
            logger.warning(f"{text} in {_SACCT_AGAIN_S} s")
        command = _CONTROLLER
    return await _ask_states(command, logger)


async def _first_words(command: str, logger: Any) -> tuple[dict[str, str] | None, float | None]:
    """Ask for states, each in one word.

    sacct says `CANCELLED by 1000`; the stock plug-in knows `CANCELLED`, and takes anything else
    for a job that still runs: it would wait for a cancelled job for ever. The profile that came
    before the plug-in had the same: https://github.com/Snakemake-Profiles/slurm/pull/22
    """
    states, seconds = await _states(command, logger)
    _named.clear()
    if states is None:
        return None, seconds
    _named.update(states)
    return {job: state.split()[0] for job, state in states.items() if state}, seconds


stock.query_job_status = _first_words
_is_there = stock.is_query_tool_available
stock.is_query_tool_available = _can_ask
_submit_command = stock.get_submit_command


def _named_submit_command(job: Any, params: dict[str, Any], *more: Any, **options: Any) -> str:
    """Say in a job's name what it runs: the stock plug-in calls all jobs by the UUID of the run."""
    name = RUN.job_name(str(job.name))
    return str(_submit_command(job, params | {"run_uuid": name}, *more, **options))


def _by_all_names(ask: Any) -> Any:
    """Have the stock plug-in ask for the names that the run's jobs have, not for its UUID."""

    def query(_: str, *more: Any) -> Any:
        return ask(",".join(RUN.job_names()), *more)

    return query


stock.get_submit_command = _named_submit_command
stock.query_job_status_sacct = _by_all_names(stock.query_job_status_sacct)
stock.query_job_status_squeue = _by_all_names(stock.query_job_status_squeue)
efficiency_report.get_sacct_data = _by_all_names(efficiency_report.get_sacct_data)


def _block_id(job: Any) -> str:
    block = getattr(job.wildcards, "block", None)
    return str(job.name) if block is None else f"{job.name}.{block}"


def _setting(default: int, words: str) -> Any:
    return field(default=default, metadata={"help": words, "env_var": False, "required": False})


@dataclass
class ExecutorSettings(SlurmSettings):
    """The stock plug-in's settings and two of ours."""

    patience: int = _setting(3600, "How many seconds to go on submitting when Slurm refuses for a reason that passes.")
    slowest_poll: int = _setting(30, "The longest pause in seconds between two looks at the queue.")


class _NoNodes(set[str]):
    """Forgets what is added: Slurm itself keeps jobs away from a node that is down.

    The stock plug-in excludes the whole node list of a job that lost one node, healthy ones
    too: on a cluster of that size nothing can be submitted any more. It came with
    https://github.com/snakemake/snakemake-executor-plugin-slurm/pull/411 and also excludes a node
    called `None assigned`:
    https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/485
    """

    def add(self, _: str) -> None:
        return


class Executor(SlurmExecutor):
    """The Slurm executor, with nothing lost and nothing run twice."""

    def __post_init__(self, test_mode: bool = False) -> None:
        self._ending = threading.Event()
        self._refused: dict[int, float] = {}
        self._lost: dict[str, float] = {}
        self._asked: list[Any] = []
        settings = self.workflow.executor_settings
        if not _slurm.accounting():
            # sacct may be installed without a database: asked in vain, the stock plug-in drops
            # its active jobs and waits for ever.
            # https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/38
            settings.status_command = "squeue"
        super().__post_init__(test_mode)
        if not settings.exclude_failed_nodes:
            self._failed_nodes = _NoNodes()
        # A prefix of the user's, and the first part of the UUID.
        RUN.run = self.run_uuid[:-28]
        if isinstance(RUN, Run):
            RUN.rules = [rule.name for rule in self.workflow.rules]

    def get_status_command(self) -> str:
        """Ask the controller, and for no reasons of failed jobs, while sacct does not answer."""
        return "squeue" if _Sacct.silent() else str(super().get_status_command())

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """Name the account of the system file, checked once where accounts can be asked for.

        The stock plug-in asks for each job, without a bound, and refuses every job while slurmdbd is
        down; where no account is given, it takes one from the last jobs. Slurm has a default.
        """
        account = str(job.resources.get("slurm_account") or "")
        # Slurm keeps their names in small letters.
        known = sorted((_slurm.accounts() if account else None) or ())
        if known and account.lower() not in known:
            raise WorkflowError(f"account {account} is none of yours, which are: {', '.join(known)}")
        yield f" -A {shlex.quote(account)}" if account else ""

    def _report_job_error_threadsafe(self, job_info: Any, msg: str) -> None:
        """Submit again while Slurm refuses for a reason that passes.

        The stock plug-in fails the job at the first refusal.
        https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/313
        """
        job = job_info.job
        now = time.monotonic()
        reason = next((line.strip() for line in msg.splitlines() if _PASSING.search(line)), None)
        first = self._refused.setdefault(id(job), now)
        patience = self.workflow.executor_settings.patience
        if reason is None or now - first > patience or self._ending.is_set():
            super()._report_job_error_threadsafe(job_info, msg)
            return
        pause = min(30.0, max(1.0, (now - first) / 4))
        self.logger.warning(f"Slurm refuses {_block_id(job)} for now, again in {pause:.0f} s: {reason[:200]}")
        self._ending.wait(pause)
        self.run_job(job)

    def report_job_error(self, job_info: Any, msg: str | None = None, **more: Any) -> None:
        """Keep the reason for the records that are written when the run has ended."""
        lines = [line.strip() for line in (msg or "").splitlines() if line.strip()]
        RUN.failed[_block_id(job_info.job)] = " ".join(lines[:2])[:500]
        self._asked = [job for job in self._asked if job is not job_info]
        super().report_job_error(job_info, msg=msg, **more)

    def report_job_success(self, job_info: Any) -> None:
        """Forget earlier failures of a job that succeeded after all."""
        RUN.failed.pop(_block_id(job_info.job), None)
        self._asked = [job for job in self._asked if job is not job_info]
        super().report_job_success(job_info)

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Ask for states; keep the jobs when nobody answers, and drop those Slurm forgot.

        https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/331
        https://github.com/snakemake/snakemake-executor-plugin-slurm/issues/207
        """
        active = list(active_jobs)
        if not active:
            # Also while this object is still being made: the base class starts asking early.
            async for job in super().check_active_jobs(active):
                yield job
            return
        self._asked = active
        answers = self._status_query_calls
        still = [job async for job in super().check_active_jobs(active)]
        if self._status_query_calls == answers:
            still = active
        for job in still:
            if not await self._forgotten(job):
                yield job
        pause = self.workflow.executor_settings.slowest_poll
        self.next_seconds_between_status_checks = min(self.next_seconds_between_status_checks or pause, pause)

    async def _forgotten(self, job: Any) -> bool:
        """Fail a job that Slurm has not known for five minutes, though it answers."""
        name = job.external_jobid
        if name in _named or await asyncio.to_thread(_slurm.known, name):
            self._lost.pop(name, None)
            return False
        if time.monotonic() - self._lost.setdefault(name, time.monotonic()) < _FORGOTTEN_S:
            return False
        self.report_job_error(job, msg=f"Slurm no longer knows job {name}")
        return True

    def cancel_jobs(self, active_jobs: list[Any]) -> None:
        """Cancel, and remember that a person asked for it.

        While the base class asks for states, which a busy Slurm takes its time to tell, it knows of
        no active job: those that it asks for would go on.
        """
        RUN.interrupted = True
        self._ending.set()
        found = {job.external_jobid: job for job in (*active_jobs, *self._asked)}
        super().cancel_jobs(list(found.values()))

    def shutdown(self) -> None:
        """End waiting submissions first."""
        self._ending.set()
        super().shutdown()

    def clean_old_logs(self) -> None:
        """Remove old logs, but no empty folders as the stock one does: Slurm writes logs of waiting jobs there."""
        settings = self.workflow.executor_settings
        if settings.delete_logfiles_older_than > 0 and not settings.keep_successful_logs:
            _slurm.remove_old_logs(self.slurm_logdir, settings.delete_logfiles_older_than)
