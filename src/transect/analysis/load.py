"""Reading the records of one study. What cannot be read is listed, never raised.

Nothing here imports pandas or scipy: `transect status` reads by the same functions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transect.analysis.cache import RowCache, stamp_of
from transect.analysis.entries import AnyRecord, Pool, entry_of, row_of
from transect.domain.errors import TransectError
from transect.domain.files import digest
from transect.domain.record import Record, read_record

__all__ = [
    "CellState", "Key", "Loaded", "Originals", "Problem", "by_status", "cell_states",
    "load_records",
]  # fmt: skip

# A stage and a cell's id: the two folders that hold a record.
Key = tuple[str, str]

_OUTDATED = "its record is of an earlier plan: the cell runs again"
_STOPPED = "no record: the cell was stopped before it could write one"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something in the results that could not be used: where, and what is wrong with it."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CellState:
    """How a cell stands: ok, failed or skipped as its record says, or what there is instead.

    `state` is one of `ok`, `failed`, `skipped`, `running`, `waiting` (planned, not begun),
    `unreadable`, `stopped` (begun, and neither running nor recorded), each as it stands in the
    study that is planned, or `earlier` for a cell that the study no longer has.
    """

    stage: str
    cell: str
    state: str
    cause: str = ""
    message: str = ""


@dataclass(kw_only=True, slots=True)
class Loaded:
    """The records of a study in a fixed order, and what there is instead of a record.

    `records` are those of the study as planned; `earlier` names cells that it no longer has,
    `running` cells at work now, `waiting` cells that were planned and have not begun, `unreadable` those
    whose record cannot be used.
    """

    study: str
    records: list[AnyRecord] = field(default_factory=list)
    folders: dict[Key, Path] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    earlier: list[Key] = field(default_factory=list)
    running: list[Key] = field(default_factory=list)
    waiting: list[Key] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """A cell's folder and its row, or else what it is (a state) and what is wrong with it."""

    key: Key
    folder: Path | None
    row: dict[str, Any] | None
    state: str = ""
    what: str = ""


def load_records(results: Path, planned: Collection[Key] | None = None) -> Loaded:
    """Read every `STAGE/CELL/record.json` under `results`, sorted by stage and cell.

    With `planned`, the (stage, cell id) of each cell of the study, a record of another cell stands
    among `earlier` only, and a planned cell without a folder is waiting; without, every record
    counts. A mapping to the cells' planned fingerprints tells a record of a plan before: its cell
    is still waiting. A record that is no record becomes a problem. Each is parsed once: see
    `RowCache`.
    """
    loaded = Loaded(study=results.name)
    pool = Pool()
    for cell in _walk(results, planned, loaded.problems):
        where = "/".join(cell.key)
        if cell.state in ("unreadable", "stopped"):
            loaded.problems.append(Problem(where=f"{where}/record.json", what=cell.what))
            loaded.unreadable.append(Problem(where=where, what=cell.what))
        elif cell.state:
            getattr(loaded, cell.state).append(cell.key)
        elif cell.row is not None and cell.folder is not None:
            try:
                entry = entry_of(cell.row, pool)
            except (ValueError, KeyError, TypeError) as error:
                what = f"cannot be used: {type(error).__name__}: {error}"
                loaded.problems.append(Problem(where=f"{where}/record.json", what=what))
                loaded.unreadable.append(Problem(where=where, what=what))
                continue
            loaded.records.append(entry)
            loaded.folders[entry.stage, entry.cell_id] = cell.folder
    return loaded


def cell_states(results: Path, planned: Collection[Key] | None = None) -> list[CellState]:
    """Return how each cell stands, sorted by stage and cell; `planned` as in `load_records`.

    Cheap: no record that an earlier call or report has read is parsed again.
    """
    states = []
    for cell in _walk(results, planned, []):
        row = cell.row or {}
        states.append(
            CellState(
                stage=cell.key[0], cell=cell.key[1], state=cell.state or row["status"],
                cause=row.get("cause") or "", message=row.get("message") or cell.what,
            )
        )  # fmt: skip
    return states


def _walk(
    results: Path, planned: Collection[Key] | None, problems: list[Problem]
) -> Iterator[_Found]:
    """Yield every cell that has a folder or is planned, sorted by stage and cell."""
    folders: dict[Key, Path] = {}
    try:
        for stage in sorted(_folders(results), key=lambda entry: entry.name):
            for cell in _folders(Path(stage.path)):
                if "~" in cell.name:
                    folders[stage.name, cell.name] = Path(cell.path)
    except FileNotFoundError:
        problems.append(Problem(where=str(results), what="no such folder: no results yet"))
    except OSError as error:
        problems.append(Problem(where=str(results), what=f"cannot be listed: {error}"))
    wanted = None if planned is None else frozenset(planned)
    cache = RowCache(results)
    for key in sorted(folders.keys() | (wanted or frozenset())):
        if wanted is not None and key not in wanted:
            cache.keep("/".join(key))
            yield _Found(key=key, folder=folders[key], row=None, state="earlier")
        elif key not in folders:
            yield _Found(key=key, folder=None, row=None, state="waiting")
        else:
            state = _read(key, folders[key], cache, is_planned=wanted is not None)
            fingerprint = planned.get(key) if isinstance(planned, Mapping) else None
            if fingerprint and state.row is not None and not _is_of_plan(state.row, fingerprint):
                state = _Found(
                    key=key, folder=state.folder, row=None, state="waiting", what=_OUTDATED
                )
            yield state
    cache.save()


def _is_of_plan(row: dict[str, Any], fingerprint: str) -> bool:
    """Whether a record was made for a cell as it is planned now, whatever it took as inputs.

    One whose inputs could not be known carries the plan's part alone.
    """
    return row["fingerprint"] in (fingerprint, digest([fingerprint, *row["inputs"]])[:16])


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [
            entry for entry in entries if not entry.name.startswith(".") and entry.is_dir()
        ]  # fmt: skip


def _runs(attempt: Path) -> bool:
    """Whether the runner that began a cell is there; on another host nobody can tell: yes."""
    try:
        facts = json.loads(attempt.read_text(encoding="utf-8"))
        if facts["host"] != os.uname().nodename:
            return True
        os.kill(int(facts["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return False
    return True


def _read(key: Key, folder: Path, cache: RowCache, *, is_planned: bool) -> _Found:
    """Read one cell's record, or say what its folder holds instead."""
    path, name = folder / "record.json", "/".join(key)
    try:
        stamp = stamp_of(path.stat())
    except FileNotFoundError:
        if _runs(folder / "attempt.json"):
            return _Found(key=key, folder=folder, row=None, state="running")
        state = "waiting" if is_planned else "stopped"
        return _Found(key=key, folder=folder, row=None, state=state, what=_STOPPED)
    except OSError as error:
        what = f"cannot be read: {type(error).__name__}: {error}"
        return _Found(key=key, folder=folder, row=None, state="unreadable", what=what)
    row = cache.get(name, stamp)
    if row is not None:
        return _Found(key=key, folder=folder, row=row)
    try:
        record = read_record(path)
    except TransectError as error:
        what = str(error).removeprefix(f"{path}: ")
    except (OSError, ValueError) as error:
        what = f"cannot be read: {type(error).__name__}: {error}"
    else:
        if (record.stage, record.cell_id) == key:
            row = row_of(record)
            cache.put(name, stamp, row)
            return _Found(key=key, folder=folder, row=row)
        what = f"is the record of {record.stage}/{record.cell_id}"
    return _Found(key=key, folder=folder, row=None, state="unreadable", what=what)


class Originals:
    """What entries leave out, read again from their records: samples and the ends of logs."""

    def __init__(self, folders: dict[Key, Path], problems: list[Problem] | None = None) -> None:
        self._folders = folders
        self._problems = problems if problems is not None else []
        self._last: tuple[Key, Record] | None = None

    def samples(self, record: AnyRecord, name: str) -> list[float]:
        """Return the series `name` in its stored unit; empty when there is none.

        A side file that is missing, damaged or outside the record's folder becomes a problem.
        """
        original = self._original(record)
        stored = original.samples.get(name) if original is not None else None
        if stored is None:
            return []
        if stored.values is not None:
            return list(stored.values)
        folder = self._folders.get((record.stage, record.cell_id))
        if folder is None or stored.file is None:
            return []
        return self._side_file(folder, folder / stored.file, stored.key or name)

    def log_tail(self, record: AnyRecord) -> str:
        """Return the end of the record's log."""
        original = self._original(record)
        return original.log_tail if original is not None else ""

    def complain(self, record: AnyRecord, what: str) -> None:
        """Note what is wrong with a file of the record's folder."""
        self._problems.append(Problem(where=f"{record.stage}/{record.cell_id}", what=what))

    def folder(self, record: AnyRecord) -> Path | None:
        """Return the folder of a record, or None for one that was never written."""
        return self._folders.get((record.stage, record.cell_id))

    def _original(self, record: AnyRecord) -> Record | None:
        if isinstance(record, Record):
            return record
        key = (record.stage, record.cell_id)
        # Several series of one record are asked for in a row.
        if self._last is None or self._last[0] != key:
            path = self._folders[key] / "record.json"
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


def by_status(records: Iterable[AnyRecord]) -> dict[str, int]:
    """Count records as ok, failed and skipped; each key is always there."""
    counts = {"ok": 0, "failed": 0, "skipped": 0}
    for record in records:
        counts[record.status.value] += 1
    return counts
