"""Lines of a text file, however long and broken they are, in bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from transect.domain.errors import BadInput

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PIECE = 1 << 20


class TooLong(ValueError):
    """A line has more characters than it may have; the next one can be read."""


def need_file(path: Path | None) -> Path:
    """Return the path of a file. Raises BadInput where there is none, or a folder."""
    if path is None or not path.exists():
        raise BadInput(f"{path}: no such file; expected one of tickets")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no plain file"
        raise BadInput(f"{path}: is {kind}; expected a file of tickets")
    return path


class Lines(Iterator[str]):
    """The lines of a file with their ends; `number` is that of the last one, from 1.

    Bytes that are no text show as `is_broken` tells. The encoding is that of the byte order mark,
    else the one given, else UTF-8. Raises BadInput for a file that is plainly in another one: to reject its lines
    with umlauts and to keep the others would leave other tickets than there are.
    """

    def __init__(self, path: Path, encoding: str | None, longest: int) -> None:
        self.encoding = _encoding(need_file(path), encoding)
        # What UTF-8 cannot read is marked byte by byte; other codecs have no such marks.
        errors = "surrogateescape" if self.encoding == "utf-8-sig" else "replace"
        self.number = 0
        # Whether any line since it was last set to false is more than ASCII.
        self.wide = False
        self._longest = longest
        self._stream: TextIO = path.open(encoding=self.encoding, errors=errors, newline="")

    def __next__(self) -> str:
        """Return the next line. Raises TooLong for one that is too long, and StopIteration."""
        line = self._stream.readline(self._longest + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) <= self._longest:
            if not line.isascii():
                self.wide = True
            return line
        while line and not line.endswith(("\n", "\r")):
            line = self._stream.readline(_PIECE)
        raise TooLong

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def is_broken(text: str, encoding: str) -> bool:
    """Tell whether a line of `Lines` has bytes that are no text."""
    if text.isascii():
        return False
    if encoding != "utf-8-sig":
        return "\ufffd" in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _encoding(path: Path, given: str | None) -> str:
    with path.open("rb") as stream:
        head = stream.read(_PIECE)
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    name = codecs.lookup(given or "utf-8").name
    if name == "utf-16":
        raise BadInput(f"{path}: it has no byte order mark: expected the encoding utf-16-le or utf-16-be")
    lines = head.split(b"\n")[: None if len(head) < _PIECE else -1]
    wide = [line for line in lines if not line.isascii()]
    broken = sum(is_broken(line.decode(errors="surrogateescape"), "utf-8-sig") for line in wide)
    # A few broken lines are rejected as such; many mean that the whole file is.
    if given is None and (broken > max(len(wide) / 2, len(lines) / 100) or head[1::2].count(0) > len(head) / 4):
        raise BadInput(f"{path}: it is not UTF-8: name its encoding in the option `encoding`, as cp1252 or utf-16-le")
    return "utf-8-sig" if name == "utf-8" else name
