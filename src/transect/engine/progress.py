"""One line after each cell: stage, cells done, failed, skipped, time left."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from typing import Any

from transect.domain.paths import StudyPaths
from transect.domain.record import Record, own_seconds
from transect.domain.terminal import say

_MARKS = {"ok": "ok     ", "failed": "FAILED ", "skipped": "skipped"}
_WORDS = 100


def start_progress(paths: StudyPaths, todo: dict[str, int]) -> None:
    """Begin a new journal: how many cells of each stage this call of Snakemake will run."""
    paths.folder.mkdir(parents=True, exist_ok=True)
    head = {"todo": todo, "started": time.time()}
    paths.progress.write_text(json.dumps(head) + "\n", encoding="utf-8")


class Journal:
    """Reads the lines appended since the last call, and keeps sums of them."""

    def __init__(self, paths: StudyPaths) -> None:
        self._path = paths.progress
        self._at = 0
        self.todo: dict[str, int] = {}
        self._stage = ""
        self._done: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)

    def read(self) -> list[dict[str, str]]:
        """Return the rows that are new. A line that is being written is left for the next look."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._at)
                piece = stream.read()
        except OSError:
            return []
        piece = piece[: piece.rfind(b"\n") + 1]
        self._at += len(piece)
        rows = []
        for line in piece.splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            # A disk that was full may have left anything.
            with contextlib.suppress(AttributeError, TypeError, KeyError, ValueError):
                if "todo" in row:
                    self.todo = {str(stage): int(count) for stage, count in row["todo"].items()}
                else:
                    self._add(row)
                    rows.append(row)
        return rows

    def _add(self, row: dict[str, str]) -> None:
        text_of(row)
        seconds = float(row["seconds"])
        self._stage = row["stage"]
        self._done[row["stage"]] += 1
        self._ends[row["status"]] += 1
        self._seconds[row["stage"]] += seconds

    def left_s(self) -> float:
        """Estimate how many seconds of cells are left, one after another; 0 as long as nothing ended."""
        every, left = sum(self._seconds.values()) / max(1, self._done.total()), 0.0
        for name, count in self.todo.items():
            # Cells of a stage cost alike: what is left is estimated stage by stage.
            known = self._done[name]
            left += max(0, count - known) * (self._seconds[name] / known if known else every)
        return left

    def line(self) -> str:
        """Say where the study stands."""
        stage, done, total = self._stage, self._done.total(), sum(self.todo.values())
        (minutes, seconds), in_stage = divmod(round(self.left_s()), 60), self._done[stage]
        return (
            f"{stage} {in_stage}/{max(in_stage, self.todo.get(stage, 0))} · "
            f"all {done}/{max(total, done)} done, {self._ends['failed']} failed, "
            f"{self._ends['skipped']} skipped · about {minutes}:{seconds:02d} left"
        )


def row_of(record: Record) -> dict[str, str]:
    """Return a record's row of the journal."""
    row = {
        "stage": record.stage,
        "cell": record.cell_id,
        "status": record.status.value,
        "seconds": f"{own_seconds(record):.3f}",
    }
    if record.cause:
        words = " ".join(record.message.split())[:_WORDS]
        row["reason"] = f" ({record.cause.value}: {words})"
    return row


def text_of(row: dict[str, Any]) -> str:
    """Say how a cell ended. Raises KeyError for what is no row."""
    return f"{_MARKS[row['status']]} {row['cell']}{row.get('reason', '')}"


def tell(row: dict[str, Any]) -> None:
    """Print a row."""
    say(f"[transect] {text_of(row)}")


class Progress:
    """Adds finished cells to the journal and prints the line."""

    def __init__(self, paths: StudyPaths) -> None:
        self._path = paths.progress
        self._journal = Journal(paths)
        self._journal.read()

    def note(self, record: Record) -> None:
        """Add a finished cell."""
        row = row_of(record)
        # One write of one short line with O_APPEND: parallel blocks do not mix.
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        with os.fdopen(handle, "wb") as stream:
            stream.write((json.dumps(row) + "\n").encode())
        tell(row)
        self._journal.read()
        if self._journal.todo:
            say(f"[transect]         {self._journal.line()}")


# The first one comes early; then reports may take a fiftieth of the time. How long one takes that another block's runner
# made is not known.
_FIRST_S, _SHARE, _USUAL_S = 60.0, 50, 5.0


def make_report_of(paths: StudyPaths) -> None:
    """Make the report in a process of its own; a failure is printed and harms nothing."""
    command = [sys.executable, "-m", "transect.engine.make_report", f"--folder={paths.folder}"]
    subprocess.run(command, check=False)


class EarlyReport:
    """Makes the report when enough time has passed since the last one.

    On one machine the runner makes it, between two cells; on a cluster the main process does, whose
    node measures nothing.
    """

    def __init__(self, paths: StudyPaths) -> None:
        self._paths = paths
        try:
            # What a run of before left says nothing of this one.
            started = float(json.loads(paths.progress.open(encoding="utf-8").readline())["started"])
        except (OSError, ValueError, KeyError, TypeError):
            started = time.time()
        self._last = max(started, self._made_at())
        self._took = _USUAL_S if self._made_at() > started else 0.0

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
