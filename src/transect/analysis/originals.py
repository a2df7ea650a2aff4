"""What entries leave out of records, read again where it is shown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from transect.analysis.entries import AnyRecord, Entry, Key
from transect.analysis.load import Problem
from transect.domain.errors import TransectError
from transect.domain.record import Record, read_record


class Originals:
    """What entries leave out, read again from their records: samples and the ends of logs."""

    def __init__(self, results: Path | None, problems: list[Problem] | None = None) -> None:
        self._results = results
        self._problems = problems if problems is not None else []
        self._last: tuple[Key, Record] | None = None

    def samples(self, record: AnyRecord, name: str) -> list[float]:
        """Return the series `name` in its stored unit; empty when there is none.

        A side file that is missing, damaged or outside the record's folder becomes a problem.
        """
        if isinstance(record, Entry) and name not in record.sample_names:
            return []
        original = self._original(record)
        stored = original.samples.get(name) if original is not None else None
        if stored is None:
            return []
        if stored.values is not None:
            return list(stored.values)
        folder = self.folder(record)
        if folder is None or stored.file is None:
            return []
        return self._side_file(folder, folder / stored.file, stored.key or name)

    def log_tail(self, record: AnyRecord) -> str:
        """Return the end of the record's log."""
        original = self._original(record)
        return original.log_tail if original is not None else ""

    def foreign_cores(self, record: AnyRecord) -> float:
        """Return how many cores other programs used around a run, on the node where they used most."""
        original = self._original(record)
        looks = [] if original is None else [original.provenance.get(f"guard_{when}") for when in ("before", "after")]
        nodes = [node for look in looks for node in look or () if isinstance(node, dict)]
        return max((_cores_of(node) for node in nodes), default=0.0)

    def complain(self, record: AnyRecord, what: str) -> None:
        """Note what is wrong with a file of the record's folder."""
        self._problems.append(Problem(where=f"{record.stage}/{record.cell_id}", what=what))

    def folder(self, record: AnyRecord) -> Path | None:
        """Return the folder of a record, or None for one that was never written."""
        return None if self._results is None else self._results / record.stage / record.cell_id

    def _original(self, record: AnyRecord) -> Record | None:
        if isinstance(record, Record):
            return record
        key, folder = (record.stage, record.cell_id), self.folder(record)
        if folder is None:
            return None
        # Several series of one record are asked for in a row.
        if self._last is None or self._last[0] != key:
            path = folder / "record.json"
            try:
                self._last = (key, read_record(path))
            except (TransectError, OSError, ValueError) as error:
                what = str(error).removeprefix(f"{path}: ")
                self._problems.append(Problem(where="/".join(key), what=what))
                return None
        return self._last[1]

    def _side_file(self, folder: Path, path: Path, key: str) -> list[float]:
        import numpy as np

        try:
            if folder.resolve() not in path.resolve().parents:
                raise ValueError("outside the folder of its record")
            with np.load(path, allow_pickle=False) as arrays:
                values: list[float] = np.asarray(arrays[key], dtype=float).ravel().tolist()
                return values
        except Exception as error:  # a damaged zip raises many kinds
            what = f"samples '{key}' cannot be read: {type(error).__name__}: {error}"
            self._problems.append(Problem(where=str(path), what=what))
            return []


def _cores_of(node: dict[str, Any]) -> float:
    """Return the cores that a node's foreign processes used, and what the kernel counted beside all processes."""
    taken = [who.get("cores") for who in node.get("foreign") or () if isinstance(who, dict)]
    return math.fsum(cores for cores in (*taken, node.get("unseen_cores")) if isinstance(cores, (int, float)))
