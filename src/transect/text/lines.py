"""JSON Lines and arrays that are written as a whole or not at all, and read piece by piece."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.files import writing

# So many are read together; fewer where they are long.
_LINES, _BYTES = 128, 1 << 20


@contextmanager
def writing_lines(path: Path) -> Iterator[Callable[[Any], None]]:
    """Give a function that writes one value as one line of JSON; `path` is there at the end.

    The function raises ValueError for NaN, infinity and lone surrogates, which the file cannot hold.
    """
    # One for all lines: json.dumps makes a new one each time.
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    with writing(path) as stream:

        def write(value: Any) -> None:
            stream.write(encode(value).encode("utf-8") + b"\n")

        yield write


def read_batches(path: Path) -> Iterator[list[Any]]:
    """Yield the values of the lines of a file that `writing_lines` wrote, some at a time."""
    # As bytes: text would also be cut at other ends of lines, such as U+2028, which JSON leaves in.
    with path.open("rb") as stream:
        lines: list[bytes] = []
        size = 0
        for line in stream:
            lines.append(line)
            size += len(line)
            if len(lines) == _LINES or size >= _BYTES:
                yield _parsed(lines)
                lines, size = [], 0
        if lines:
            yield _parsed(lines)


def _parsed(lines: list[bytes]) -> list[Any]:
    # One call for all: of a short line the call is most of what parsing costs.
    values: list[Any] = json.loads(b"[" + b",".join(lines) + b"]")
    return values


def read_lines(path: Path) -> Iterator[Any]:
    """Yield the value of each line, a few in memory at a time."""
    return chain.from_iterable(read_batches(path))


def write_array(path: Path, array: np.ndarray) -> None:
    """Write one array as `.npy`."""
    with writing(path) as stream:
        np.save(stream, array)


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays by name as `.npz`."""
    with writing(path) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]
