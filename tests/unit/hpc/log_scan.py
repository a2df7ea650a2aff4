"""Reads a log with the parsers, as the tests of the parsers do."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

from transect.hpc.base import Run
from transect.hpc.scan import Scanner

# One of a name lasts for all tests: it takes a while to make, which is no part of collecting them.
scanner_of = cache(Scanner)


def scan(log: str | bytes, benchmark: str | None = None) -> list[Run]:
    """Return the runs of a log; nothing is lost, no parser breaks, and what is not ok has a reason."""
    raw = log.encode("utf-8", "surrogatepass") if isinstance(log, str) else log
    runs = list(scanner_of(benchmark).scan(io.BytesIO(raw), "log"))
    assert runs, "nothing may be lost"
    for run in runs:
        assert "fault of the parser" not in run.reason, run.reason
        assert bool(run.reason) == (run.status != "ok"), run
    return runs


def values(run: Run) -> list[tuple[str, str | None, int | None, str]]:
    """Return what a run measured: name, phase, size and the log's own digits."""
    return [(m.name, m.phase, m.size, m.printed) for m in run.metrics]


def results(runs: list[Run]) -> list[object]:
    """Return what runs say, without where they say it."""
    return [(run.benchmark, run.status, values(run)) for run in runs]


def made(name: str) -> str:
    """Return a log whose numbers are ours, of `tests/data/hpc-made`."""
    return (Path(__file__).resolve().parents[2] / "data" / "hpc-made" / f"{name}.txt").read_bytes().decode()
