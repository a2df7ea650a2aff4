"""A fast search for lines: RE2 finds candidates in linear time, `re` confirms them.

Python's `re` tries every alternative at every line: with the patterns of all parsers it reads a few
megabytes per second. RE2 (github.com/google/re2) runs through all alternatives at once.
"""

from __future__ import annotations

import re
from typing import Any

_MEMORY = 64 << 20
# A repetition of more than this costs RE2 a state for each count: any number then, which lets
# more candidates through.
_COUNTS = 8
_LINE_ENDS = ("(?=[\\r\\n]|\\Z)", "(?=\\n|\\Z)", "(?=[\\r\\n])", "(?=\\n)")
_REPEATS = ("*", "+", "?", "}")
_ESCAPED = ("\\*", "\\+", "\\?", "\\}")
_BOUNDS = re.compile(r"\{(\d*)(,?)(\d*)\}")
_LOOK = ("(?=", "(?!", "(?<=", "(?<!")
# Escapes, character classes (in which a bracket that stands first is a member), single characters.
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def _group_end(pieces: list[str], place: int) -> int:
    """Return the place behind the group that opens at `place`."""
    depth = 0
    for index in range(place, len(pieces)):
        depth += (pieces[index] == "(") - (pieces[index] == ")")
        if depth == 0:
            return index + 1
    raise ValueError("a group without an end")


def _repetition(bounds: re.Match[str]) -> str:
    """Return `{m,n}`, or what takes any number of times when it counts far."""
    low, comma, high = bounds.groups()
    most = max(int(low or 0), int(high or 0)) if high or not comma else _COUNTS + 1
    if most <= _COUNTS:
        return bounds[0]
    return "+" if int(low or 0) else "*"


def relaxed(pattern: str) -> str:
    """Return a pattern for RE2 that matches wherever `pattern` does, and perhaps elsewhere.

    Without look-around and with no long counts; possessive repetition and atomic groups as plain ones; an end of the input
    (`\\Z`) as RE2's.
    """
    pieces = _PIECE.findall(pattern)
    found: list[str] = []
    place = 0
    while place < len(pieces):
        piece = pieces[place]
        head = "".join(pieces[place : place + 4])
        if head.startswith(_LOOK):
            start, place = place, _group_end(pieces, place)
            if "".join(pieces[start:place]) in _LINE_ENDS:
                # Taken instead of looked at: parsers write it last.
                found.append("(?:[\\r\\n]|\\z)")
                continue
            # A repetition of what is gone goes with it.
            while place < len(pieces) and pieces[place] in ("?", "*", "+"):
                place += 1
            continue
        if head.startswith("(?>"):
            found.append("(?:")
            place += 3
            continue
        if piece == "{" and (bounds := _BOUNDS.match("".join(pieces[place : place + 24]))):
            found.append(_repetition(bounds))
            place += bounds.end()
            continue
        if piece == "+" and found and found[-1][-1:] in _REPEATS and found[-1] not in _ESCAPED:
            place += 1
            continue
        found.append({"\\Z": "\\z"}.get(piece, piece))
        place += 1
    return "".join(found)


class LinePattern:
    """What `Reader` searches for: `search` as that of a compiled pattern."""

    def __init__(self, pattern: str) -> None:
        """Compile `pattern`, which begins with a newline. Raises re.error when it is none."""
        self.exact = pattern.encode()
        self._exact = re.compile(self.exact)
        self._fast = self._compile(pattern)
        self._dense = False  # whether the last search found the very next line

    @staticmethod
    def _compile(pattern: str) -> Any:  # re2 has no types
        """Return RE2's search; None where RE2 cannot express it (a plug-in's back-reference)."""
        import re2

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.log_errors = False
        options.never_capture = True  # which keeps it to its automaton
        options.max_mem = _MEMORY
        try:
            return re2.compile(relaxed(pattern).encode(), options=options)
        except re2.error:
            return None

    @property
    def fast(self) -> bool:
        """Whether RE2 searches."""
        return self._fast is not None

    def search(self, buffer: bytes, start: int, end: int) -> re.Match[bytes] | None:
        """Return the first match between `start` and `end`."""
        if self._fast is None:
            return self._exact.search(buffer, start, end)
        # Lines of results stand together: the next one is tried before RE2 is asked, which takes longer to
        # start than `re` takes for a line.
        if self._dense:
            match = self._exact.match(buffer, start, end)
            if match is not None:
                return match
        found = self._search(buffer, start, end)
        self._dense = found is not None and found.start() == start
        return found

    def _search(self, buffer: bytes, start: int, end: int) -> re.Match[bytes] | None:
        assert self._fast is not None
        # RE2 sees no end of the region, and a pattern may want the line's.
        beyond = min(end + 1, len(buffer))
        while (candidate := self._fast.search(buffer, start, beyond)) is not None:
            place = candidate.start()
            if place >= end:
                return None
            match = self._exact.match(buffer, place, end)
            if match is not None:
                return match
            start = place + 1
        return None
