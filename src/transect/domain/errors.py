"""Exceptions that users may see. The exit code says whose fault it is."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from transect.domain.files import FULL
from transect.domain.names import meant
from transect.domain.terminal import complain, printable, say


class TransectError(Exception):
    """Base of all errors that transect raises on purpose: one argument for each line.

    As a text every line can be shown on a terminal, whatever the names in it hold.
    """

    exit_code = 1

    def __str__(self) -> str:
        return "\n".join(printable(str(line)) for line in self.args)


class BadInput(TransectError, ValueError):
    """What was given cannot be used: the message names it and says what was expected."""

    exit_code = 2


class Complaints:
    """All that is wrong with an input, collected, so that it is reported at once."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a BadInput in place of passing it on."""
        try:
            yield
        except BadInput as error:
            self._lines |= dict.fromkeys(map(str, error.args))

    def __len__(self) -> int:
        return len(self._lines)

    def end(self) -> None:
        """Raise BadInput with all that was noted, if anything was."""
        if self._lines:
            raise BadInput(*self._lines)


class WrongResult(TransectError):
    """What came out is not what was asked for, whatever it looks like."""


class MissingDependency(TransectError, ImportError):
    """A program, library or environment that is needed is not there."""

    exit_code = 3


class Unsupported(TransectError):
    """What a cell needs is not here, which is no fault: the cell is skipped."""


class Interruption(BaseException):
    """This process must end with `code`: because of a signal, or because its Snakemake is gone."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def interruption_behind(error: BaseException) -> Interruption | None:
    """Return the interruption in whose handling an error arose, or None.

    Code that a signal breaks off may close a file twice, as `shutil.rmtree` does: "Bad file descriptor".
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, Interruption):
        seen = seen.__context__
    return seen


# What code of others, such as a plug-in, may raise. One that calls sys.exit must not end a process
# of ours in silence: that is its fault, as any exception is. Nothing can be done about os._exit.
FAULTS = (Exception, SystemExit)


def unknown_name(
    kind: str,
    given: str,
    known: Iterable[str],
    where: str = "",
    others: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> BadInput:
    """Make the error for a name that is not known, with those that it may stand for, or the nearest one.

    `others`: what people call some of the known ones besides.

    >>> str(unknown_name("framework", "troch", ["torch", "numpy"]))
    "unknown framework 'troch': did you mean 'torch'? Known: numpy, torch"
    """
    names = {name: others.get(name, ()) for name in known}
    found = meant(given, names)
    if not found:
        spellings = {spelling.casefold(): name for name, called in names.items() for spelling in (*called, name)}
        near = difflib.get_close_matches(given.casefold(), spellings, n=1, cutoff=0.5)
        found = [spellings[spelling] for spelling in near]
    *first, last = (f"'{name}'" for name in found or [""])
    either = f"{', '.join(first)} or {last}" if first else last
    hint = f" did you mean {either}?" if found else ""
    prefix = f"{where}: " if where else ""
    return BadInput(f"{prefix}unknown {kind} '{given}':{hint} Known: {', '.join(sorted(names)) or 'none'}")


def check_known(
    kind: str,
    given: Iterable[str],
    known: Collection[str],
    where: str = "",
    others: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> None:
    """Raise BadInput for all names that are not known, as `unknown_name` has it."""
    if wrong := [str(unknown_name(kind, name, known, where, others)) for name in given if name not in known]:
        raise BadInput(*wrong)


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
    elif isinstance(error, Unsupported) or name == "UnsupportedOperatorError":  # torch's exporter
        cause = "unsupported"
    elif isinstance(error, ImportError):
        cause = "missing-dependency"
    elif isinstance(error, WrongResult):
        cause = "wrong-result"
    else:
        cause = "crash"
    return {"cause": cause, "message": f"{name}: {text}"}


def say_fault(error: BaseException, where: object = "this machine") -> int:
    """Say on stderr what ended a process of ours; return the exit code that it ends with.

    One message for what a person can mend; for a fault of ours also where it is. `where` stands
    for the file of an OSError that does not name it, as when a file system is full.
    """
    if (end := interruption_behind(error)) is not None:
        return end.code
    if isinstance(error, TransectError):
        complain(error)
        return error.exit_code
    if isinstance(error, OSError) and error.errno is not None:
        file = where if error.filename is None else error.filename
        complain(f"{printable(str(file))}: {error.strerror}")
        # EX_TEMPFAIL: the same again may do when there is room.
        return 75 if error.errno in FULL else BadInput.exit_code
    at = traceback.extract_tb(error.__traceback__)[-1:]
    if isinstance(error, SystemExit):
        place = "".join(f"{frame.filename}:{frame.lineno}: " for frame in at)
        complain(f"{place}sys.exit({error.code!r}) was called: a plug-in raises an error instead")
        return BadInput.exit_code
    say(*"".join(traceback.format_exception(error)).splitlines())
    complain(f"{type(error).__name__}: {error}")
    return 1
