"""Progress of cells that run elsewhere: follows the journal and prints it here."""

from __future__ import annotations

import json
import sys
import threading
import time

from transect.domain.paths import StudyPaths
from transect.execution.progress import progress_line

__all__ = ["Follower"]

_POLL_S = 1.0


class Follower:
    """Prints one line for each cell that a job on another node finished."""

    def __init__(self, paths: StudyPaths) -> None:
        self._paths = paths
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen = 0

    def begin(self) -> None:
        """Start to follow; the journal has to exist."""
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.wait(_POLL_S):
            self._print_new()

    def _print_new(self) -> None:
        try:
            lines = self._paths.progress.read_text(encoding="utf-8").splitlines()
            head, *rows = [json.loads(line) for line in lines]
        except (OSError, ValueError):
            return  # not there yet, or a line that is being written
        for number in range(self._seen, len(rows)):
            row = rows[number]
            mark = {"ok": "ok", "failed": "FAILED", "skipped": "skipped"}[row["status"]]
            print(f"[transect] {mark:7} {row['cell']}{row.get('reason', '')}", file=sys.stderr)
        if len(rows) > self._seen:
            self._seen = len(rows)
            print(f"[transect]         {progress_line(head, rows, time.time())}", file=sys.stderr)

    def end(self) -> None:
        """Print what is left and stop."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join(timeout=5)
            self._print_new()
