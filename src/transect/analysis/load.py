"""Reading the records of one study. What cannot be read is listed, never raised.

Nothing here imports pandas or scipy: `transect status` reads by the same functions.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from transect.analysis.entries import AnyRecord, Key, Pool, Row, entry_of, row_of
from transect.analysis.index import RecordIndex
from transect.domain.errors import TransectError
from transect.domain.files import state_of
from transect.domain.owner import Owner
from transect.domain.record import read_record, run_fingerprint

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

    `records` are those of the study as planned; `earlier` names cells that it no longer has, `running` cells at work
    now, `waiting` cells that were planned and have not begun, `unreadable` those whose record cannot be used.
    """

    study: str
    results: Path | None = None
    records: list[AnyRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    earlier: list[Key] = field(default_factory=list)
    running: list[Key] = field(default_factory=list)
    waiting: list[Key] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)


class _Found(NamedTuple):
    """A cell's row, or else what it is (a state) and what is wrong with it."""

    key: Key
    row: Row | None
    state: str = ""
    what: str = ""


def load_records(results: Path, planned: Collection[Key] | None = None) -> Loaded:
    """Read every `STAGE/CELL/record.json` under `results`, sorted by stage and cell.

    With `planned`, the (stage, cell id) of each cell of the study, a record of another cell stands among `earlier`
    only, and a planned cell without a folder is waiting; without, every record counts. A mapping to the cells' planned
    fingerprints tells a record of a plan before: its cell is still waiting. A record that is no record becomes a
    problem. Of many, each is parsed once: see `RecordIndex`.
    """
    loaded = Loaded(study=results.name, results=results)
    pool = Pool()

    def damaged(where: str, what: str) -> None:
        loaded.problems.append(Problem(where=f"{where}/record.json", what=what))
        loaded.unreadable.append(Problem(where=where, what=what))

    for cell in _walk(results, planned, loaded.problems):
        where = "/".join(cell.key)
        if cell.state in ("unreadable", "stopped"):
            damaged(where, cell.what)
        elif cell.state:
            getattr(loaded, cell.state).append(cell.key)
        elif cell.row is not None:
            try:
                loaded.records.append(entry_of(cell.row, pool))
            except (ValueError, KeyError, TypeError) as error:
                damaged(where, f"cannot be used: {type(error).__name__}: {error}")
    return loaded


def cell_states(results: Path, planned: Collection[Key] | None = None) -> list[CellState]:
    """Return how each cell stands, sorted by stage and cell; `planned` as in `load_records`.

    Cheap: no record that an earlier call or report has read is parsed again.
    """
    states = []
    for cell in _walk(results, planned, []):
        row = cell.row.content if cell.row is not None else {}
        states.append(
            CellState(
                stage=cell.key[0],
                cell=cell.key[1],
                state=cell.state or row["status"],
                cause=row.get("cause") or "",
                message=row.get("message") or cell.what,
            )
        )
    return states


def _walk(results: Path, planned: Collection[Key] | None, problems: list[Problem]) -> Iterator[_Found]:
    """Yield every cell that has a folder or is planned, sorted by stage and cell."""
    there: set[Key] = set()
    try:
        for stage in sorted(_folders(results)):
            there |= {(stage, cell) for cell in _folders(results / stage) if "~" in cell}
    except FileNotFoundError:
        problems.append(Problem(where=str(results), what="no such folder: no results yet"))
    except OSError as error:
        problems.append(Problem(where=str(results), what=f"cannot be listed: {error}"))
    wanted = None if planned is None else frozenset(planned)
    with contextlib.closing(RecordIndex(results, len(there))) as index:
        for key in sorted(there | (wanted or frozenset())):
            if key not in there:
                yield _Found(key, None, "waiting")
            elif wanted is not None and key not in wanted:
                yield _Found(key, None, "earlier")
            else:
                found = _look(results, key, index, is_planned=wanted is not None)
                fingerprint = planned.get(key) if isinstance(planned, Mapping) else None
                outdated = fingerprint and found.row is not None and not _is_of_plan(found.row, fingerprint)
                yield _Found(key, None, "waiting", _OUTDATED) if outdated else found


def _look(results: Path, key: Key, index: RecordIndex, *, is_planned: bool) -> _Found:
    """Return the row of a cell's record, or what there is instead of one."""
    name = "/".join(key)
    # No `Path` before it is needed: to make one takes as long as to take a row from the index.
    path = f"{results}/{name}/record.json"
    try:
        state = state_of(os.stat(path))  # noqa: PTH116
        row = index.get(name, state)
        if row is None:
            record = read_record(Path(path))
            if (record.stage, record.cell_id) != key:
                return _Found(key, None, "unreadable", f"is the record of {record.stage}/{record.cell_id}")
            row = row_of(record)
            index.put(name, state, row)
        return _Found(key, row)
    except FileNotFoundError:
        if _runs(results / name / "attempt.json"):
            return _Found(key, None, "running")
        return _Found(key, None, "waiting" if is_planned else "stopped", _STOPPED)
    except TransectError as error:
        return _Found(key, None, "unreadable", str(error).removeprefix(f"{Path(path)}: "))
    except (OSError, ValueError) as error:
        return _Found(key, None, "unreadable", f"cannot be read: {type(error).__name__}: {error}")


def _is_of_plan(row: Row, fingerprint: str) -> bool:
    """Whether a record was made for a cell as it is planned now, whatever it took as inputs.

    One whose inputs could not be known carries the plan's part alone.
    """
    return row.content["fingerprint"] in (fingerprint, run_fingerprint(fingerprint, row.content["inputs"]))


def _folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]


def _runs(attempt: Path) -> bool:
    """Whether the runner that began a cell is there; on another host nobody can tell: yes."""
    try:
        return Owner.of(json.loads(attempt.read_text(encoding="utf-8"))).lives()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def by_status(records: Iterable[AnyRecord]) -> dict[str, int]:
    """Count records as ok, failed and skipped; each key is always there."""
    counts = {"ok": 0, "failed": 0, "skipped": 0}
    for record in records:
        counts[record.status.value] += 1
    return counts
