"""What a script of a study tells of its epochs: the lines that are read, and those that are refused by their number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import transect
from transect.domain.record import Cause
from transect.stages.train.script import last_words
from transect.stages.train.script_result import read_epochs

BEGAN = 1000.0


def told(folder: Path, *lines: dict[str, Any] | str) -> Path:
    path = folder / "epochs.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def line(epoch: Any, at: float = 10.0, **more: Any) -> dict[str, Any]:
    return {"epoch": epoch, "metric": 0.5, "at": BEGAN + at} | more


def test_the_study_says_which_clock_counts(tmp_path: Path) -> None:
    path = told(tmp_path, line(1, 10, seconds=2), line(3, 20, seconds=8))
    own = read_epochs(path, BEGAN, "told")
    assert own.ends.tolist() == [2, 8]
    # Two epochs lie between the lines.
    assert own.took.tolist() == [2, 3]
    ours = read_epochs(path, BEGAN, "start")
    assert ours.ends.tolist() == [10, 20] and ours.took.tolist() == [10, 5]


def test_numbers_may_be_text_as_a_pattern_finds_them(tmp_path: Path) -> None:
    found = read_epochs(told(tmp_path, line("1", metric="0.5", loss="1e-3")), BEGAN, "start")
    assert found.loss is not None and found.loss.tolist() == [0.001]


WRONG = {
    "nothing": ([], "told of no epoch: expected calls of transect.log_epoch on rank 0"),
    "no JSON": ([line(1), "{"], "epochs.jsonl, line 2: '{': expected a JSON object"),
    "no object": (["3"], "line 1: '3': expected a JSON object"),
    "no metric": ([{"epoch": 1, "at": 3}], "line 1: lacks metric"),
    "no number": ([line(1), line(2, loss="abc")], "line 2: loss is 'abc': expected a number"),
    "doubled": ([line(1), line(2), line(2)], "line 3: epoch 2 follows 2: expected one line of each epoch"),
    "of each epoch": ([line(1, seconds=3), line(2, seconds=2.9)], "line 2: seconds 2.9 follows 3"),
    "now and then": ([line(1, loss=1), line(2)], "line 2: loss stands in this line or in line 1 alone"),
    "no clock": ([line(1)], "line 1: no seconds: the workload's `clock` is `told`"),
    "no samples": ([line(1, samples=0)], "line 1: samples is 0"),
    "below 0": ([line(-1)], "line 1: epoch is -1: expected a number of 0 or more"),
    "milliseconds": ([line(1, 10, seconds=9000)], "line 1: seconds 9000, and the script began 10 s before"),
}


@pytest.mark.parametrize("later", [0.0, 2e-5, -1.0])
def test_epochs_that_are_told_at_once_have_no_times(tmp_path: Path, later: float) -> None:
    path = told(tmp_path, line(1, 60, seconds=6), line(2, 60 + later, seconds=12))
    with pytest.raises(ValueError, match="line 2: told together with line 1: expected each as its epoch ends"):
        read_epochs(path, BEGAN, "start")
    assert read_epochs(path, BEGAN, "told").took.tolist() == [6, 6]


def test_a_training_takes_time(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1: seconds is 0"):
        read_epochs(told(tmp_path, line(1, seconds=0)), BEGAN, "told")


@pytest.mark.parametrize("case", WRONG)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, case: str) -> None:
    lines, message = WRONG[case]
    with pytest.raises(ValueError) as caught:
        read_epochs(told(tmp_path, *lines), BEGAN, "told" if case == "no clock" else "start")
    assert message in str(caught.value)


def test_the_helper_writes_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "epochs.jsonl"
    monkeypatch.setenv("TRANSECT_EPOCHS", str(path))
    transect.log_epoch(epoch=1, metric=0.25, loss=float("nan"))
    found = read_epochs(path, BEGAN, "start")
    assert found.metric.tolist() == [0.25] and found.samples is None


def test_the_helper_writes_nothing_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRANSECT_EPOCHS", raising=False)
    monkeypatch.chdir(tmp_path)
    transect.log_epoch(epoch=1, metric=0.25)
    assert not list(tmp_path.iterdir())


def traceback(*last: str) -> str:
    return "\n".join(
        f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n{one}' for one in last
    )


ENDS = {
    traceback("ValueError: boom"): (Cause.CRASH, "ValueError: boom"),
    traceback("torch.OutOfMemoryError: CUDA out of memory. Tried"): (Cause.OUT_OF_MEMORY, "torch.OutOfMemoryError"),
    traceback("MemoryError"): (Cause.OUT_OF_MEMORY, "MemoryError"),
    traceback("RuntimeError: DefaultCPUAllocator: can't allocate memory: x"): (Cause.OUT_OF_MEMORY, "RuntimeError"),
    traceback("ModuleNotFoundError: No module named 'foo'"): (Cause.MISSING_DEPENDENCY, "ModuleNotFoundError"),
    traceback("KeyError: 'a'", "ValueError: boom"): (Cause.CRASH, "ValueError: boom"),
    "Error: this is no traceback": (Cause.CRASH, ""),
    "": (Cause.CRASH, ""),
}


@pytest.mark.parametrize("log", ENDS)
def test_the_cause_is_read_from_the_last_exception(log: str) -> None:
    cause, message = last_words(log, several=False)
    assert (cause, message.startswith(ENDS[log][1])) == (ENDS[log][0], True)
    assert bool(message) == bool(ENDS[log][1])


def test_of_several_ranks_the_first_exception_counts() -> None:
    text = traceback("ValueError: boom", "RuntimeError: connection closed by peer").replace("\n", "\n[rank1]: ")
    assert last_words(text, several=True)[1] == "ValueError: boom"
