"""From what Slurm says of a job or a step to the cause, or the energy, in a record."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from transect.adapters.slurm import scheduler
from transect.adapters.slurm.scheduler import Slurm
from transect.adapters.slurm.steps import step_cause
from transect.domain.cell import Cell
from transect.domain.record import Cause
from transect.engine.job import Job, Result
from transect.engine.payload import COUNTER, counts_energy, note_energy, step_name
from transect.launch.processes import Outcome

NODE, AT = "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-21T01:00:00", " DUE TO"
STEPS = [
    (
        "slurmstepd-n1: error: StepId=11.1 exceeded memory limit (895463424 > 629145600), being killed\n"
        "srun: error: n1: task 0: Killed\n",
        Cause.OUT_OF_MEMORY,
    ),
    (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\nsrun: error: n7: task 3: Out Of Memory\n",
        Cause.OUT_OF_MEMORY,
    ),
    ("epoch 1\nsrun: error: n2: tasks 1,3: Killed\n", Cause.KILLED),
    (f"{NODE}{AT} NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n", Cause.NODE_FAILURE),
    (f"{NODE}{AT} TIME LIMIT ***\nsrun: error: n1: task 0: Terminated\n", Cause.TIMEOUT),
    (f"{NODE} ***\n", Cause.KILLED),
    # One crashed, srun ended the other: the first line counts.
    ("srun: error: n1: task 0: Exited with exit code 1\nsrun: error: n2: task 1: Killed\n", None),
]


@pytest.mark.parametrize(("log", "cause"), STEPS)
def test_the_first_telling_line_of_srun_names_the_cause(log, cause):
    found = step_cause(log)
    assert found is not None and found[0] == cause
    # A payload that prints such words is not believed.
    assert step_cause("n1: task 0: Killed\nexceeded memory limit\nNode failure on n1\n") is None


def job_is(state: str, reason: str = "None", nodes: str = "n1") -> str:
    return f"JobId=7 JobName=x JobState={state} Reason={reason} Dependency=(null) NodeList={nodes}"


@pytest.mark.parametrize(
    ("state", "reason", "cause", "words"),
    [
        ("TIMEOUT", "TimeLimit", Cause.TIMEOUT, "time limit"),
        ("NODE_FAIL", "NodeDown", Cause.NODE_FAILURE, "(NodeDown)"),
        ("CANCELLED", "None", Cause.KILLED, "cancelled"),
        ("OUT_OF_MEMORY", "OutOfMemory", Cause.OUT_OF_MEMORY, "memory"),
        ("PREEMPTED", "None", Cause.SCHEDULER, "preempted"),
        ("FAILED", "NonZeroExitCode", Cause.KILLED, "FAILED"),
    ],
)
def test_what_became_of_a_job(says, tmp_path, state, reason, cause, words):
    says["scontrol"] = [job_is(state, reason, "n[1-2]")]
    fate = Slurm().fate("7", tmp_path)
    assert fate.cause is cause
    assert words in fate.message and "job 7 on n[1-2]" in fate.message


def test_a_job_that_the_controller_has_forgotten_is_asked_of_accounting(says, tmp_path):
    assert Slurm().fate("7", tmp_path).cause is Cause.KILLED
    scheduler.accounting.cache_clear()
    # The first question is for the job, the second one for the configuration.
    says["scontrol"] = [None, "AccountingStorageType = accounting_storage/slurmdbd"]
    says["sacct"] = ["CANCELLED by 1000|n3|None"]
    fate = Slurm().fate("7", tmp_path)
    assert fate.cause is Cause.KILLED and fate.message == "job 7 on n3 was cancelled"


def test_a_job_whose_nodes_still_clean_up_is_asked_for_again(says, tmp_path, monkeypatch):
    says["scontrol"] = [job_is("COMPLETING", "NodeDown"), job_is("NODE_FAIL", "NodeDown")]
    assert Slurm().fate("7", tmp_path).cause is Cause.NODE_FAILURE
    # One that never ends to clean up is called what Slurm calls it.
    says["scontrol"] = [job_is("COMPLETING")]
    monkeypatch.setattr(scheduler, "_CLEANING_S", 0)
    fate = Slurm().fate("7", tmp_path)
    assert fate.cause is Cause.KILLED and "COMPLETING" in fate.message


def test_a_job_killed_for_memory_may_be_called_failed(says, tmp_path):
    says["scontrol"] = [job_is("FAILED")]
    (tmp_path / "rule_x").mkdir()
    (tmp_path / "rule_x" / "7.log").write_text("slurmstepd: error: JobId=7 exceeded memory limit\n")
    assert Slurm().fate("7", tmp_path).cause is Cause.OUT_OF_MEMORY
    assert Slurm().fate("8", tmp_path).cause is Cause.KILLED


OUTCOME = Outcome(end="exited", code=0, seconds=12.5, peak_bytes=0)
CELL = Cell.of(stage="train", workload="w", framework="numpy", strategy="single", batch=4)


def job(*, reports: bool = True) -> Job:
    return cast("Job", SimpleNamespace(spec={"about": {"step_energy": reports}}, cell=CELL))


def row(step: str, joules: str, state: str = "COMPLETED", name: str | None = None) -> str:
    return f"7.{step}|{name or step_name(job())}|{state}|{joules}\n"


def noted(**details: Any) -> Result:
    result = Result(details=dict(details))
    note_energy(job(), OUTCOME, result)
    return result


def test_the_steps_energy_is_told_once_its_nodes_have_reported(says):
    # Of a step that began twice the last one counts.
    others = "7|sbatch|RUNNING|\n7.batch|batch|RUNNING|99\n" + row("0", "44", name="else")
    says["sacct"] = [others, others + row("1", "", "RUNNING"), others + row("0", "70") + row("1", "1234")]
    result = noted()
    [energy] = result.metrics
    assert (energy.name, energy.value, energy.label, energy.unit) == ("energy", 1234, COUNTER, "J")
    assert result.details["step_energy"] == {"seconds": 12.5}
    assert len(says.asked) == 3 and says.asked[0][:3] == ("sacct", "-j", "7")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "sacct knows no step transect-"),
        (row("1", ""), "calls the step 7.1 COMPLETED, and its energy ''"),
        (row("1", "0"), "reports '0' as the energy"),
        (row("1", str(2**64 - 2)), "as the energy of the step 7.1"),
        (row("1", "12", "FAILED"), "calls the step 7.1 FAILED"),
        (None, "sacct does not answer"),
    ],
)
def test_what_sacct_does_not_tell_is_named_and_nothing_is_made_up(says, monkeypatch, answer, why):
    monkeypatch.setattr(scheduler, "_ACCOUNTS_S", 0)
    says["sacct"] = [answer]
    result = noted(kept=1)
    assert result.metrics == [] and result.details["kept"] == 1
    assert why in result.details["step_energy"]["missing"]


def test_nothing_is_asked_where_nobody_counts(says, monkeypatch):
    assert not counts_energy(job(reports=False))
    monkeypatch.delenv("SLURM_JOB_ID")
    assert not counts_energy(job()) and noted().details == {}
    assert says.asked == []
