"""Arrays whose length is not known before they are written, and lists that lie flat in two of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from transect.domain.files import writing


class Growing:
    """A `.npy` file to which rows are added; see `growing`."""

    def __init__(self, stream: BinaryIO, dtype: str, row: tuple[int, ...]) -> None:
        self.length, self._row, self._dtype = 0, row, np.dtype(dtype)
        self._stream = stream
        self.write_header()

    def append(self, rows: np.ndarray) -> None:
        """Add rows (n, *row)."""
        assert rows.shape[1:] == self._row
        self.length += len(rows)
        self._stream.write(np.ascontiguousarray(rows, self._dtype).data)

    def write_header(self) -> None:
        """Say how many rows there are by now."""
        # numpy leaves room in a header for any length, so that the last one can go over the first.
        self._stream.seek(0)
        shape = (self.length, *self._row)
        facts = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._stream, facts)


@contextmanager
def growing(path: Path, dtype: str, row: tuple[int, ...] = ()) -> Iterator[Growing]:
    """Give an array whose rows of shape `row` become `path` at the end; after an exception, none does."""
    with writing(path) as stream:
        array = Growing(stream, dtype, row)
        yield array
        array.write_header()


class Piece(NamedTuple):
    """Some lists in a row: the first one's place, where each begins in `values`, and the end of all."""

    first: int
    starts: np.ndarray
    values: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Of each list, (lists,) int64."""
        return np.diff(self.starts)

    def owners(self) -> np.ndarray:
        """Return the list that each value is of, counted from the piece's first: (values,) int64."""
        return np.repeat(np.arange(len(self.starts) - 1), self.lengths)


class Lists:
    """Lists of int32 in `values` one after another, of which list i is from `offsets[i]` on.

    They are read in pieces: what is in memory does not grow with their number.
    """

    def __init__(self, values: Path, offsets: Path) -> None:
        self._path, self._offsets = values, np.load(offsets, mmap_mode="r")
        self._begin = _data_begins(values)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def pieces(self, values: int = 1 << 18, lists: int = 1 << 14) -> Iterator[Piece]:
        """Yield all lists in order, so many at a time that they have about `values` values.

        Not more than `lists`, and at least one however long it is.
        """
        first = 0
        with self._path.open("rb") as stream:
            stream.seek(self._begin)
            while first < len(self):
                starts = np.array(self._offsets[first : first + lists + 1], np.int64)
                most = int(np.searchsorted(starts, starts[0] + values, side="right")) - 1
                starts = starts[: max(most, 1) + 1]
                count = int(starts[-1] - starts[0])
                read = np.fromfile(stream, np.int32, count)
                if len(read) != count:
                    raise EOFError(f"{self._path}: ends before its last list")
                yield Piece(first, starts - starts[0], read)
                first += len(starts) - 1


def _data_begins(path: Path) -> int:
    with path.open("rb") as stream:
        npy.read_magic(stream)
        npy.read_array_header_1_0(stream)
        return stream.tell()
