"""A report while the study runs, so that a person can look at what is there so far."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from transect.domain.paths import StudyPaths

# The first one comes early; then a report may take a twentieth of the time.
_FIRST_S = 60.0
_SHARE = 20


def make_report_of(paths: StudyPaths) -> None:
    """Make the report in a process of its own; a failure is told and harms nothing."""
    command = [sys.executable, "-m", "transect.engine.make_report", f"--folder={paths.folder}"]
    subprocess.run(command, check=False)


class EarlyReport:
    """Makes the report when enough time has passed since the last one.

    On one machine the runner makes it, between two cells; on a cluster the main process does, whose
    node measures nothing.
    """

    def __init__(self, paths: StudyPaths) -> None:
        self._paths = paths
        self._took = 0.0
        try:
            # What a run of before left says nothing of this one.
            started = json.loads(paths.progress.open(encoding="utf-8").readline())["started"]
            self._last = max(float(started), self._made_at())
        except (OSError, ValueError, KeyError, TypeError):
            self._last = time.time()

    def _made_at(self) -> float:
        try:
            return self._paths.report.stat().st_mtime
        except OSError:
            return 0.0

    def make_if_due(self) -> None:
        """Make the report if it is due."""
        due = max(_FIRST_S, _SHARE * self._took)
        if time.time() - max(self._last, self._made_at()) < due:
            return
        begin = time.monotonic()
        make_report_of(self._paths)
        self._took, self._last = time.monotonic() - begin, time.time()
