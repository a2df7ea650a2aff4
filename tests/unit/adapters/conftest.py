"""Slurm's programs, as they answer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from transect.adapters.slurm import scheduler


class Answers(dict[str, list[str | None]]):
    """What each program says, one after another, and then the last again; None, as of others: nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, *command: str, patience_s: float = 0) -> str | None:
        self.asked.append(command)
        left = self.get(command[0], [None])
        return left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """Return what is to be filled; this process is in job 7, and pauses cost no time."""
    answers = Answers()
    monkeypatch.setattr(scheduler, "ask", answers)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    scheduler.accounting.cache_clear()
    yield answers
    scheduler.accounting.cache_clear()
