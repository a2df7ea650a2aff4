"""All cases run, whatever the runner does: it crashes, hangs, leaves half a line or the contract."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from transect.domain.errors import Unsupported
from transect.runtimes import _case_runs
from transect.runtimes._case_runs import CaseEnd, CaseRun, RunnerFault
from transect.runtimes.plan_file import Entry, Level, Plan, Role, write_plan
from transect.runtimes.programs import RESULT

pytestmark = pytest.mark.env

STUMBLING = Path(__file__).resolve().parents[2] / "data" / "runners" / "stumbling.py"
PATIENCE_S = 60.0


class Clock:
    """Stands still, but while the runner says that it hangs: then every look finds it later."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 0.0

    def __call__(self) -> float:
        record = self.folder / RESULT
        ended = record.read_text().count('"timeout"') if record.exists() else 0
        if len(list(self.folder.glob("hangs-*"))) > ended:
            self.now += 2 * PATIENCE_S
        return self.now


def run_of(folder: Path, *names: str, script: Path = STUMBLING) -> CaseRun:
    """A run of cases of these names."""

    def command(first: int) -> list[str]:
        models = [Entry(role=Role.MODEL, group=number, name=name) for number, name in enumerate(names)]
        plan = Plan(level=Level.CASES, entries=[Entry(role=Role.OUT, text=str(folder)), *models[first:]])
        write_plan(folder / "plan.bin", plan)
        return [sys.executable, str(script), str(folder / "plan.bin")]

    return CaseRun(
        command,
        names,
        folder / RESULT,
        log=folder / "runner.log",
        variables=os.environ,
        patience_s=PATIENCE_S,
        clock=Clock(folder),
    )


def statuses(ends: list[CaseEnd]) -> list[str]:
    return [end.status for end in ends]


# What each case ends with, and words of the first that did not go well.
ENDS = {
    "ok-0 failed-1 ok-2": ("ok failed ok", "no kernel"),
    "abort-0 ok-1 abort-2 abort-3 ok-4": (
        "crash ok crash crash ok",
        "the runner was ended by SIGABRT: stumbling: the kernel gave way",
    ),
    "ok-0 hang-1 ok-2 hang-3": ("ok timeout ok timeout", "nothing came for 60 s"),
    "ok-0 late-1 ok-2": ("ok crash ok", "after its outputs were written"),
    "quit-0 ok-1": ("crash ok", "ended with exit code 0"),
}


@pytest.mark.parametrize("names", ENDS)
def test_all_cases_end_and_are_told_in_order(tmp_path, names):
    # A record of before is none of this run.
    (tmp_path / RESULT).write_text('{"case": 0, "status": "started"}\n')
    expected, words = ENDS[names]
    ends = run_of(tmp_path, *names.split()).run()
    assert statuses(ends) == expected.split()
    assert words in next(end.message for end in ends if end.status != "ok")


def test_half_a_line_was_never_written(tmp_path):
    ends = run_of(tmp_path, "ok-0", "half-1", "ok-2").run()
    assert statuses(ends) == ["ok", "crash", "ok"]
    # The record can be read to its end: what was cut off is not in the middle of it.
    lines = [json.loads(line) for line in (tmp_path / RESULT).read_text().splitlines()]
    assert [(line["case"], line["status"]) for line in lines] == [
        (0, "started"),
        (0, "ok"),
        (1, "started"),
        (1, "crash"),
        (2, "started"),
        (2, "ok"),
    ]


FAULTS = {
    "ends before the list does": (["ok-0", "stop-1"], "exit code 0 after 1 of 2 cases"),
    "cannot begin": (["refuse-0"], "exit code 2 after 0 of 1 cases, at none: stumbling: refuse"),
    "says a case twice": (["twice-0", "ok-1"], "line 3: case 0, expected case 1 'ok-1'"),
    "speaks of another case": (["other-0"], "line 2: case 99, expected case 0"),
    "writes no JSON": (["babble-0"], "line 2: expected case and status, got Segmentation"),
    "fails after the last case": (["tumble-0"], "ended with exit code 7 after its last case"),
    "hangs after the last case": (["linger-0"], "did not end after its last case"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_runner_that_breaks_the_contract_is_told(tmp_path, what):
    names, expected = FAULTS[what]
    with pytest.raises(RunnerFault) as error:
        run_of(tmp_path, *names).run()
    assert expected in str(error.value)


def test_a_runner_that_counts_from_elsewhere_is_told(tmp_path):
    (tmp_path / "runner.py").write_text(STUMBLING.read_text().replace('{"case": case.group}', '{"case": 0}'))
    run = run_of(tmp_path, "ok-0", "abort-1", "ok-2", script=tmp_path / "runner.py")
    with pytest.raises(RunnerFault, match="case 0, expected case 1 'abort-1'"):
        run.run()


def test_a_runner_that_hangs_before_the_first_case_is_told(tmp_path):
    script = STUMBLING.read_text().replace("    cases = list(", "    stay(path)\n    cases = list(")
    (tmp_path / "runner.py").write_text(script)
    run = run_of(tmp_path, "ok-0", script=tmp_path / "runner.py")
    with pytest.raises(RunnerFault, match="did nothing for 60 s after 0 of 1 cases"):
        run.run()


def test_a_provider_that_is_not_there_is_a_skip_in_the_runner_s_words(tmp_path):
    with pytest.raises(Unsupported, match=r"^stumbling: lack: said so$"):
        run_of(tmp_path, "lack-0", "ok-1").run()


def test_a_runner_that_always_crashes_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(_case_runs, "_MAX_STARTS", 3)
    names = [f"abort-{number}" for number in range(5)]
    with pytest.raises(RunnerFault, match="started 3 times and has come to case 3 of 5"):
        run_of(tmp_path, *names).run()
