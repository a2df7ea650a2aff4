"""Reading the records of one study. What cannot be read is listed, never raised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from transect.domain.errors import TransectError
from transect.domain.record import Record, read_record

__all__ = ["Loaded", "Problem", "SampleReader", "by_status", "load_records"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something in the results that could not be used: where, and what is wrong with it."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(kw_only=True, slots=True)
class Loaded:
    """The records of a study in a fixed order, with the folder of each and what went wrong."""

    study: str
    records: list[Record] = field(default_factory=list)
    folders: dict[tuple[str, str], Path] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def load_records(results: Path) -> Loaded:
    """Read every `STAGE/CELL/record.json` under `results`, sorted by stage and cell.

    A cell folder without a record, or with one that does not validate, becomes a problem.
    """
    loaded = Loaded(study=results.name)
    if not results.is_dir():
        loaded.problems.append(Problem(where=str(results), what="no such folder: no results yet"))
        return loaded
    for folder in sorted(path for path in results.glob("*/*~*") if path.is_dir()):
        path = folder / "record.json"
        where = str(path.relative_to(results))
        if not path.exists():
            what = "no record: the cell is running, or was stopped before it could write one"
            loaded.problems.append(Problem(where=where, what=what))
            continue
        try:
            record = read_record(path)
        except TransectError as error:
            what = str(error).removeprefix(f"{path}: ")
            loaded.problems.append(Problem(where=where, what=what))
            continue
        except (OSError, ValueError) as error:
            what = f"cannot be read: {type(error).__name__}: {error}"
            loaded.problems.append(Problem(where=where, what=what))
            continue
        loaded.records.append(record)
        loaded.folders[(record.stage, record.cell_id)] = folder
    return loaded


class SampleReader:
    """Gives raw samples of a record, inline or from its `.npz`; each file is opened once."""

    def __init__(
        self, folders: dict[tuple[str, str], Path], problems: list[Problem] | None = None
    ) -> None:
        self._folders = folders
        self._problems = problems if problems is not None else []
        self._cache: dict[tuple[Path, str], list[float]] = {}

    def get(self, record: Record, name: str) -> list[float]:
        """Return the series `name` in its stored unit; empty when there is none.

        A side file that is missing, damaged or outside the record's folder becomes a problem.
        """
        samples = record.samples.get(name)
        if samples is None:
            return []
        if samples.values is not None:
            return list(samples.values)
        folder = self._folders.get((record.stage, record.cell_id))
        if folder is None or samples.file is None:
            return []
        path, key = folder / samples.file, samples.key or name
        if (path, key) not in self._cache:
            self._cache[(path, key)] = self._read(folder, path, key)
        return self._cache[(path, key)]

    def _read(self, folder: Path, path: Path, key: str) -> list[float]:
        try:
            if folder.resolve() not in path.resolve().parents:
                raise ValueError("outside the folder of its record")
            with np.load(path, allow_pickle=False) as arrays:
                return [float(value) for value in np.asarray(arrays[key], dtype=float).ravel()]
        except Exception as error:  # a damaged zip raises many kinds
            what = f"samples '{key}' cannot be read: {type(error).__name__}: {error}"
            self._problems.append(Problem(where=str(path), what=what))
            return []


def by_status(records: Iterable[Record]) -> dict[str, int]:
    """Count records as ok, failed and skipped; each key is always there."""
    counts = {"ok": 0, "failed": 0, "skipped": 0}
    for record in records:
        counts[record.status.value] += 1
    return counts
