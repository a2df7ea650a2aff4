"""Progress of cells that run elsewhere: follows the journal, prints it here, makes early reports."""

from __future__ import annotations

import threading

from transect.domain.paths import StudyPaths
from transect.domain.terminal import say
from transect.engine.early_report import EarlyReport
from transect.engine.progress import Journal, tell

_POLL_S = 1.0


class Follower:
    """Prints one line for each cell that a job on another node finished."""

    def __init__(self, paths: StudyPaths) -> None:
        self._paths = paths
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start to follow; the journal has to exist."""
        self._journal, self._early = Journal(self._paths), EarlyReport(self._paths)
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.wait(_POLL_S):
            self._print_new()

    def _print_new(self) -> None:
        rows = self._journal.read()
        for row in rows:
            tell(row)
        if rows:
            self._early.make_if_due()
            say(f"[transect]         {self._journal.line()}")

    def end(self) -> None:
        """Print what is left and stop."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join(timeout=5)
            self._print_new()
