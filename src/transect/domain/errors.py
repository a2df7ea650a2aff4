"""Exceptions that a person may see. The exit code tells whose fault it is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BadInput",
    "MissingDependency",
    "TransectError",
    "Unsupported",
    "error_facts",
    "unknown_name",
]


class TransectError(Exception):
    """Base of all errors that transect raises on purpose."""

    exit_code = 1


class BadInput(TransectError, ValueError):
    """What was given cannot be used: the message names it and says what was expected."""

    exit_code = 2


class MissingDependency(TransectError, ImportError):
    """A program, library or environment that is needed is not there."""

    exit_code = 3


class Unsupported(TransectError):
    """What is asked for cannot run here, and that is no fault: the cell is skipped."""


def unknown_name(kind: str, given: str, known: Iterable[str], where: str = "") -> BadInput:
    """Make the error for a name that is not known, with the nearest known one.

    >>> str(unknown_name("framework", "troch", ["torch", "numpy"]))
    "unknown framework 'troch': did you mean 'torch'? Known: numpy, torch"
    """
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f" did you mean '{near[0]}'?" if near else ""
    prefix = f"{where}: " if where else ""
    return BadInput(f"{prefix}unknown {kind} '{given}':{hint} Known: {', '.join(names) or 'none'}")


def error_facts(error: BaseException) -> dict[str, str]:
    """Name the cause of an exception in the words of the record."""
    name, text = type(error).__name__, str(error)
    lower = text.lower()
    if (
        isinstance(error, MemoryError)
        or name in ("OutOfMemoryError", "ResourceExhaustedError")
        or "can't allocate memory" in lower
    ):
        cause = "out-of-memory"
    elif isinstance(error, BadInput):
        cause = "bad-input"
    elif isinstance(error, ImportError):
        cause = "missing-dependency"
    else:
        cause = "crash"
    return {"cause": cause, "message": f"{name}: {text}"}
