"""One line after each cell: stage, cells done, failed, skipped, time left."""

from __future__ import annotations

import json
import os
import sys
import time

from transect.domain.paths import StudyPaths
from transect.domain.record import Record

__all__ = ["note_progress", "progress_line", "start_progress"]


def start_progress(paths: StudyPaths, todo: dict[str, int]) -> None:
    """Begin a new journal: how many cells of each stage this call of Snakemake will run."""
    paths.folder.mkdir(parents=True, exist_ok=True)
    head = {"todo": todo, "started": time.time()}
    paths.progress.write_text(json.dumps(head) + "\n", encoding="utf-8")


def progress_line(head: dict[str, object], rows: list[dict[str, str]], now: float) -> str:
    """Say where the study stands, from the journal's head and rows."""
    todo = head["todo"]
    assert isinstance(todo, dict)
    total, done = sum(todo.values()), len(rows)
    stage = rows[-1]["stage"]
    counts = {s: sum(row["status"] == s for row in rows) for s in ("failed", "skipped")}
    in_stage = sum(row["stage"] == stage for row in rows)
    # Cells of a stage cost alike: what is left is estimated stage by stage.
    seconds: dict[str, list[float]] = {}
    for row in rows:
        seconds.setdefault(row["stage"], []).append(float(row["seconds"]))
    every = [value for values in seconds.values() for value in values]
    left = 0.0
    for name, count in todo.items():
        known = seconds.get(name, every)
        left += max(0, count - len(seconds.get(name, ()))) * sum(known) / len(known)
    minutes, rest = divmod(round(left), 60)
    return (
        f"{stage} {in_stage}/{todo.get(stage, in_stage)} · all {done}/{max(total, done)} done, "
        f"{counts['failed']} failed, {counts['skipped']} skipped · about {minutes}:{rest:02d} left"
    )


def note_progress(paths: StudyPaths, record: Record) -> None:
    """Add a finished cell to the journal and print the line."""
    from datetime import datetime

    took = datetime.fromisoformat(record.ended) - datetime.fromisoformat(record.started)
    row = {
        "stage": record.stage,
        "cell": record.cell_id,
        "status": record.status.value,
        "seconds": f"{took.total_seconds():.3f}",
    }
    # One write of one short line with O_APPEND: parallel cells do not mix.
    handle = os.open(paths.progress, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    with os.fdopen(handle, "wb") as stream:
        stream.write((json.dumps(row) + "\n").encode())
    mark = {"ok": "ok     ", "failed": "FAILED ", "skipped": "skipped"}[record.status.value]
    reason = (
        f" ({record.cause.value}: {record.message.splitlines()[0][:100]})" if record.cause else ""
    )
    print(f"[transect] {mark} {record.cell_id}{reason}", file=sys.stderr)
    try:
        lines = paths.progress.read_text(encoding="utf-8").splitlines()
        head, *rows = [json.loads(line) for line in lines]
        if "todo" in head:
            print(f"[transect]         {progress_line(head, rows, time.time())}", file=sys.stderr)
    except (OSError, ValueError):
        return
