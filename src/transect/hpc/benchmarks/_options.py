"""Options of a cell, checked: what was given, and what is expected."""

from __future__ import annotations

import re
from collections.abc import Callable

from transect.domain.axes.bench import BenchCell

_SIZE = re.compile(r"([1-9][0-9]{0,14})([kmg]?)", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}


class OptionError(ValueError):
    """An option that the benchmark cannot take, in one sentence."""


def _wrong(name: str, given: object, expected: str) -> OptionError:
    return OptionError(f"option {name}: expected {expected}, found {given!r}")


def whole(cell: BenchCell, name: str, default: int, least: int = 1) -> int:
    """Return an option that is a whole number. Raises OptionError below `least`."""
    given = cell.option(name, default)
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise _wrong(name, given, f"a whole number from {least} on")
    return given


def fraction(cell: BenchCell, name: str, default: float) -> float:
    """Return an option between 0 and 1, without them. Raises OptionError otherwise."""
    given = cell.option(name, default)
    if not isinstance(given, float) or not 0 < given < 1:
        raise _wrong(name, given, "a number between 0 and 1")
    return given


def size_bytes(cell: BenchCell, name: str, default: str) -> tuple[str, int]:
    """Return a size as it was given, e.g. `64m`, and in bytes: k, m and g are powers of 1024.

    Raises OptionError for what IOR and nccl-tests would not understand.
    """
    given = str(cell.option(name, default))
    match = _SIZE.fullmatch(given)
    if match is None:
        raise _wrong(name, given, "bytes such as 4096, 64k, 16m or 2g")
    return given, int(match[1]) << _UNITS[match[2].lower()]


def one_of(cell: BenchCell, name: str, default: str, choices: tuple[str, ...]) -> str:
    """Return an option that is one of `choices`. Raises OptionError naming them."""
    given = str(cell.option(name, default))
    if given not in choices:
        raise _wrong(name, given, f"one of {', '.join(choices)}")
    return given


def text(cell: BenchCell, name: str, default: str, pattern: str, expected: str) -> str:
    """Return an option that matches `pattern` whole. Raises OptionError saying `expected`."""
    given = str(cell.option(name, default))
    if re.fullmatch(pattern, given) is None:
        raise _wrong(name, given, expected)
    return given


def program_name(cell: BenchCell, default: str) -> str:
    """Return option `program`, a name or an absolute path: the run has a folder of its own."""
    pattern = r"[\w.+-]+|/[\w./+-]+"
    return text(cell, "program", default, pattern, "a name, or an absolute path")


def complaint(read: Callable[[BenchCell], object], cell: BenchCell) -> str | None:
    """Return what `read` says against the cell's options, or None."""
    try:
        read(cell)
    except OptionError as error:
        return str(error)
    return None
