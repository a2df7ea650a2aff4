"""The executor plug-in: an interruption cancels every job, whatever Snakemake does meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm_robust as plugin
from snakemake_executor_plugin_slurm_robust import Executor, SlurmExecutor, stock
from snakemake_interface_common.exceptions import WorkflowError

from transect.engine.submissions import SUBMISSIONS


class Asked(dict[str, int]):
    """A job's resources, as Snakemake offers them."""

    __getattr__ = dict.__getitem__


def test_jobs_whose_states_are_being_asked_for_are_cancelled_too(monkeypatch):
    executor = object.__new__(Executor)
    executor._ending, executor._asked, executor._lost = threading.Event(), [], {}
    executor._status_query_calls, executor._next_seconds_between_status_checks = 0, 1
    executor.workflow = SimpleNamespace(executor_settings=SimpleNamespace(slowest_poll=1))
    named = [SimpleNamespace(name="train", wildcards=SimpleNamespace()) for _ in range(3)]
    ended, runs, young = (SimpleNamespace(job=job, external_jobid=str(number)) for number, job in enumerate(named))
    cancelled = []

    async def interrupted(self, jobs):
        self._status_query_calls += 1
        self.report_job_success(jobs[0])
        # As the base class has it now: what was submitted since is all that it knows of.
        self.cancel_jobs([young])
        yield jobs[1]

    monkeypatch.setattr(SlurmExecutor, "check_active_jobs", interrupted)
    monkeypatch.setattr(SlurmExecutor, "report_job_success", lambda self, job: None)
    monkeypatch.setattr(SlurmExecutor, "cancel_jobs", lambda self, jobs: cancelled.extend(jobs))

    async def ask():
        return [job async for job in executor.check_active_jobs([ended, runs])]

    monkeypatch.setattr("snakemake_executor_plugin_slurm_robust._slurm.known", lambda job: True)
    # In a thread of its own: a browser that this worker began keeps a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asyncio.run, ask()).result() == [runs]
    assert cancelled == [young, runs]
    executor.cancel_jobs([runs])
    assert cancelled == [young, runs, runs], "once, though it is known twice"


def test_a_job_is_called_by_its_stage_and_study_and_found_by_that_name(monkeypatch):
    monkeypatch.setattr(plugin, "RUN", SUBMISSIONS)
    for field, value in (("study", "quick"), ("rules", ("train", "infer")), ("run", "1a2b3c4d")):
        monkeypatch.setattr(SUBMISSIONS, field, value)
    job = SimpleNamespace(name="train", threads=1, resources=Asked(nodes=1, cpus_per_task=1))
    params = dict.fromkeys(("slurm_logfile", "comment_str", "account", "partition", "workdir"), "")
    line = stock.get_submit_command(job, params | {"run_uuid": "a-uuid"})
    assert "--job-name train.quick.1a2b3c4d " in line
    for ask in (stock.query_job_status_sacct, stock.query_job_status_squeue):
        names = ask("a-uuid").split("--name ")[1].split(",")
        assert "train.quick.1a2b3c4d" in names and "infer.quick.1a2b3c4d" in names
        # What no rule of a block submits has a name too.
        assert SUBMISSIONS.job_name("make_environment") in names
    monkeypatch.setattr(SUBMISSIONS, "study", "long" * 50)
    assert len(SUBMISSIONS.job_name("train")) < 255


def test_the_controller_tells_states_while_sacct_is_silent(monkeypatch, caplog):
    asked = []

    async def answers(command, logger):
        asked.append(command.split()[0])
        return (None, None) if command.startswith("sacct") else ({"7": "CANCELLED by 0"}, 0.1)

    monkeypatch.setattr(plugin, "_ask_states", answers)
    monkeypatch.setattr(plugin._Sacct, "silent_until", 0.0)
    settings = SimpleNamespace(status_command="sacct")
    executor = object.__new__(Executor)
    executor.workflow = SimpleNamespace(executor_settings=settings)
    assert executor.get_status_command() == "sacct"

    def look():
        with ThreadPoolExecutor(1) as pool:
            answer = plugin._first_words("sacct -X --name run", logging.getLogger())
            return pool.submit(asyncio.run, answer).result()

    assert look() == look() == ({"7": "CANCELLED"}, 0.1)
    # One line, and no second wait for an answer that may take a minute not to come.
    assert asked == ["sacct", "squeue", "squeue"]
    assert caplog.text.count("sacct does not answer") == 1
    assert executor.get_status_command() == "squeue"
    monkeypatch.setattr(plugin, "_is_there", lambda tool: True)
    can_ask = plugin.stock.is_query_tool_available
    assert can_ask("squeue") and not can_ask("sacct")
    monkeypatch.setattr(plugin._Sacct, "silent_until", 0.0)
    assert can_ask("sacct")
    look()
    assert asked[3:] == ["sacct", "squeue"]


@pytest.mark.parametrize("known", [None, ["physics"]])
def test_an_account_is_checked_where_somebody_knows_accounts(monkeypatch, known):
    monkeypatch.setattr("snakemake_executor_plugin_slurm_robust._slurm.accounts", lambda: known)

    def argument(account):
        return next(object.__new__(Executor).get_account_arg(SimpleNamespace(resources={"slurm_account": account})))

    assert (argument("Physics"), argument(None)) == (" -A Physics", "")
    # sbatch itself refuses one that does not exist.
    with contextlib.nullcontext() if known is None else pytest.raises(WorkflowError, match=r"chemistry .*physics"):
        assert argument("chemistry") == " -A chemistry"


def test_old_logs_go_and_the_folders_of_waiting_jobs_stay(tmp_path):
    folder = tmp_path / "logs"
    executor = object.__new__(Executor)
    executor.slurm_logdir = folder
    executor.workflow = SimpleNamespace(
        executor_settings=SimpleNamespace(delete_logfiles_older_than=10, keep_successful_logs=False)
    )
    executor.clean_old_logs()  # before any job has a log
    (folder / "rule_train/waits").mkdir(parents=True)
    old, new = folder / "rule_train/old.log", folder / "rule_train/new.log"
    for path, days in ((old, 11), (new, 9)):
        path.touch()
        os.utime(path, (time.time() - days * 86400,) * 2)
    executor.workflow.executor_settings.keep_successful_logs = True
    executor.clean_old_logs()
    assert old.exists()
    executor.workflow.executor_settings.keep_successful_logs = False
    executor.clean_old_logs()
    assert {path.name for path in folder.rglob("*")} == {"rule_train", "waits", "new.log"}
