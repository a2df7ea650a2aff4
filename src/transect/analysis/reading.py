"""Reading the records that are in no cache: where there are many, by a process for each core.

A process of its own, `python -m transect.analysis.reading`, takes the folders' names and gives a line
for each: no fork takes along the threads and locks of numerical libraries, and no caller is run again.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from transect.analysis.cache import Packed, packed
from transect.analysis.entries import row_of
from transect.domain.errors import TransectError
from transect.domain.record import read_record

# A stage and a cell's id: the two folders that hold a record.
Key = tuple[str, str]

# A process takes as long to begin as so many records to read.
_MANY = 4000
# Records that each reads in turn, and the most processes: a disk has one head.
_TURN, _MOST_PROCESSES = 200, 8
# What stands before the line of a record that cannot be used.
_PROBLEM = b"!"


def read_rows(results: Path, keys: Sequence[Key]) -> Iterator[Packed | str]:
    """Yield the row of each `STAGE/CELL/record.json` in their order, or what is wrong with it."""
    amount = min(_cores(), _MOST_PROCESSES)
    turns = [keys[i : i + _TURN] for i in range(0, len(keys), _TURN)]
    if len(keys) < _MANY or amount < 2:
        yield from (_read_row(results, key) for key in keys)
        return
    readers = [_Reader(results, turns[i::amount]) for i in range(amount)]
    try:
        for place, turn in enumerate(turns):
            reader = readers[place % amount]
            for key in turn:
                yield reader.next() or _read_row(results, key)
    finally:
        for reader in readers:
            reader.end()


class _Reader:
    """A process that reads some of the records. One that ends early has nothing more to say."""

    def __init__(self, results: Path, turns: Sequence[Sequence[Key]]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        package = str(Path(__file__).resolve().parents[2])
        known = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([package, *([known] if known else [])])
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(results)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
            assert self._process.stdin is not None
            # It reads all of it before it says anything.
            with self._process.stdin as stream:
                stream.write(json.dumps(list(chain.from_iterable(turns))).encode("ascii"))
        except OSError:
            self.end()

    def next(self) -> Packed | str | None:
        """Return what it found next; None when it is gone."""
        if self._process is None:
            return None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            self.end()
            return None
        if line.startswith(_PROBLEM):
            told: str = json.loads(line[len(_PROBLEM) :])
            return told
        *shared, own = line[:-1].split(b"\t")
        return Packed(tuple(shared), own)

    def end(self) -> None:
        """End the process, whatever it has left to say."""
        if self._process is not None:
            self._process.kill()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process.wait()
            self._process = None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_row(results: Path, key: Key) -> Packed | str:
    path = Path(results, *key, "record.json")
    try:
        record = read_record(path)
    except TransectError as error:
        return str(error).removeprefix(f"{path}: ")
    except (OSError, ValueError) as error:
        return f"cannot be read: {type(error).__name__}: {error}"
    if (record.stage, record.cell_id) != key:
        return f"is the record of {record.stage}/{record.cell_id}"
    return packed(row_of(record))


def main() -> None:
    """Read the records of standard input, a list of stages and cells; write a line for each."""
    # Nothing here refers to itself, and to look for what does takes a tenth of the time.
    gc.disable()
    results = Path(sys.argv[1])
    for stage, cell in json.load(sys.stdin):
        row = _read_row(results, (stage, cell))
        if isinstance(row, str):
            line = _PROBLEM + json.dumps(row).encode("ascii")
        else:
            line = b"\t".join([*row.shared, row.own])
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
