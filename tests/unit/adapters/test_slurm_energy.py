"""Energy of job steps from Slurm's accounting: what sacct tells, when, and what it leaves out."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from transect.adapters.slurm import scheduler
from transect.domain.cell import Cell
from transect.engine.job import Job, Result
from transect.engine.step_energy import COUNTER, counts_energy, note_energy, step_name
from transect.launch.processes import Outcome

pytestmark = pytest.mark.env

OUTCOME = Outcome(end="exited", code=0, seconds=12.5, peak_bytes=0)
CELL = Cell.of(stage="train", workload="w", framework="numpy", strategy="single", batch=4)


def job(*, told: bool = True) -> Job:
    return cast("Job", SimpleNamespace(spec={"about": {"step_energy": told}}, cell=CELL))


def fake_sacct(folder: Path, monkeypatch: pytest.MonkeyPatch, *answers: str) -> Path:
    """Answer with each in turn, then with the last again; return where the arguments are noted."""
    for number, answer in enumerate(answers):
        (folder / f"answer-{number}").write_text(answer)
    asked = folder / "asked"
    script = folder / "sacct"
    script.write_text(f"""#!/bin/sh
cd {shlex.quote(str(folder))}
echo "$@" >>asked
n=$(($(wc -l <asked) - 1))
[ $n -lt {len(answers)} ] || n={len(answers) - 1}
cat answer-$n
""")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    return asked


def row(step: str, joules: str, state: str = "COMPLETED", name: str | None = None) -> str:
    return f"7.{step}|{name or step_name(job())}|{state}|{joules}\n"


def noted(**details: Any) -> Result:
    result = Result(details=dict(details))
    note_energy(job(), OUTCOME, result)
    return result


def test_the_steps_energy_is_told_once_its_nodes_have_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = "7|sbatch|RUNNING|\n7.batch|batch|RUNNING|99\n" + row("0", "44", name="else")
    asked = fake_sacct(tmp_path, monkeypatch, others, others + row("1", "", "RUNNING"), others + row("1", "1234"))
    result = noted()
    [energy] = result.metrics
    assert (energy.name, energy.value, energy.label, energy.unit) == ("energy", 1234, COUNTER, "J")
    assert result.details["step_energy"] == {"seconds": 12.5}
    assert len(asked.read_text().splitlines()) == 3 and "-j 7 -n -P" in asked.read_text()


def test_of_a_step_that_began_twice_the_last_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_sacct(tmp_path, monkeypatch, row("1", "70") + row("2", "80"))
    assert noted().metrics[0].value == 80


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "sacct knows no step transect-"),
        (row("1", ""), "tells no energy of the step 7.1"),
        (row("1", "0"), "tells '0' as the energy"),
        (row("1", str(2**64 - 2)), "as the energy of the step 7.1"),
        (row("1", "-5"), "tells '-5'"),
        (row("1", "12", "FAILED"), "calls the step 7.1 FAILED"),
        ("<script>|a\n||||\n", "sacct knows no step transect-"),
    ],
)
def test_what_sacct_does_not_tell_is_named_and_nothing_is_made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, why: str
) -> None:
    fake_sacct(tmp_path, monkeypatch, answer)
    monkeypatch.setattr(scheduler, "_ACCOUNTS_S", 0)
    told = scheduler.Slurm().step_energy(step_name(job()))
    assert isinstance(told, str) and why in told


def test_without_sacct_or_outside_of_slurm_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    result = noted(kept=1)
    assert result.metrics == []
    assert result.details["kept"] == 1 and result.details.keys() == {"kept", "step_energy"}
    assert result.details["step_energy"].keys() == {"missing"}
    assert "sacct" in result.details["step_energy"]["missing"]
    assert not counts_energy(job(told=False))
    monkeypatch.delenv("SLURM_JOB_ID")
    assert not counts_energy(job()) and noted().details == {}
