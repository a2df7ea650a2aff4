"""Writes what became of each test, and how long it took, to build/tests/last-run.jsonl.

`scripts/test-durations` makes tests/durations.json of it. A line: id, tier, outcome, seconds of set-up, of the test and
of the clean-up, worker. The last line says whether the run was whole, how many tests never had their turn, and
how many files could not be read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

LAST_RUN = Path("build", "tests", "last-run.jsonl")


class RunLog:
    """Puts together the three phases of each test; workers tell them to the one process that writes."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        # Of two runs at once, the one that ends last is the last run.
        self._written = path.with_suffix(f".{os.getpid()}")
        self._file = self._written.open("w", buffering=1, encoding="utf-8")
        self._open: dict[str, dict[str, Any]] = {}
        self._ended: set[str] = set()
        self._unread = self._collected = 0
        self._whole = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase; write the line when it is the last one."""
        line = self._open.setdefault(
            report.nodeid, {"id": report.nodeid, "outcome": "passed", "setup": 0.0, "call": 0.0}
        )
        line[report.when] = round(report.duration, 3)
        line["worker"] = getattr(report, "worker_id", "")
        line["tier"] = dict(report.user_properties).get("tier", line.get("tier", ""))
        if report.failed or (report.skipped and line["outcome"] == "passed"):
            line["outcome"] = report.outcome if report.when == "call" or report.skipped else "error"
            if report.failed:
                line["why"] = report.longreprtext[-4000:]
        if report.when == "teardown":
            self._ended.add(report.nodeid)
            self._file.write(json.dumps(self._open.pop(report.nodeid)) + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count files that cannot be read: workers run the others."""
        self._unread += report.failed

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Note whether every test of `make test` had its turn: only such a run tells how long files take."""
        config = session.config
        names = "keyword markexpr maxfail exhaustive lf deselect ignore ignore_glob stepwise setuponly setupplan"
        chosen = any(getattr(config.option, name, None) for name in names.split())
        self._collected = session.testscollected
        self._whole = exitstatus in (0, 1) and not chosen and config.args_source.name == "TESTPATHS"

    def pytest_unconfigure(self) -> None:
        """Write what was begun and did not end: its worker died."""
        for line in self._open.values():
            self._file.write(json.dumps(line | {"outcome": "lost"}) + "\n")
        missed = self._collected - len(self._ended | self._open.keys())
        whole = self._whole and not missed and not self._unread
        last = {"whole": whole, "missed": missed, "unread": self._unread}
        self._file.write(json.dumps(last) + "\n")
        self._file.close()
        if self._written.exists():  # No test of this run took the folder away.
            self._written.replace(self._path)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Write in one process: the only one, or the one that hands out work."""
    config = session.config
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(RunLog(config.rootpath / LAST_RUN), "transect-run-log")
