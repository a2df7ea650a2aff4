"""Labels of hosts in front of lines: what several programs print into one file is read for each on its own.

"node1: " of pdsh and clush, "worker-1  | " of Compose and "[pod/hpl-0/main] " of kubectl may as well be a program's own
words. It is a label where the first line of a benchmark's output stands behind it; from there on all that looks
like it (with other numbers) is one.
"""

from __future__ import annotations

import re

# In front of a label that is one. Control characters mean nothing in a log.
MARK = "\x01"
HOST = (
    r"(?:[A-Za-z0-9][\w.\-]{0,99}(?::[ \t]|[ \t]{1,60}\|[ \t])"
    r"|\[pod/[\w.\-]{1,100}/[\w.\-]{1,100}\][ \t])"
)
# The file is read once for each.
MAX_HOSTS = 512

# What a carriage return wrote over a line (`transect.hpc.text`) belongs to the line's label.
_REWRITTEN = rb"(?:\n\0[^\n]*)*"
_PARTS = re.compile(rb"(.*?)(:?[ \t|]+)", re.DOTALL)
_NUMBERS = re.compile(rb"\d+")


class Hosts:
    """Keeps one host's lines of a file; while that is the first host, lines without a label too.

    `front` is the pattern of what may stand before a label in a line. Other hosts' lines become blank, so that
    lines keep their numbers.
    """

    def __init__(self, front: str) -> None:
        self._front = front.encode()
        self._shapes: set[bytes] = set()
        self._only: bytes | None = None
        self._first = True
        self._joined = False
        self._found: dict[bytes, None] = {}
        self._mine = self._other = re.compile(b"(?!)")
        self._unlabelled = re.compile(rb"\n(?!\0|%b%b)[^\n]+%b" % (self._front, MARK.encode(), _REWRITTEN))

    @property
    def others(self) -> list[bytes]:
        """Hosts that were met beside the one whose lines are kept, in the order of the file."""
        return [] if self._joined else [host for host in self._found if host != self._only]

    def adopt(self, label: bytes, *, joined: bool) -> None:
        """Take a label, and what looks like it, for a host's; the first one's lines are kept.

        All are when they are `joined`: what the hosts print belongs together.
        """
        name, ending = self._parts(label)
        behind = rb"[ \t]{1,60}\|[ \t]" if b"|" in ending else re.escape(ending)
        self._shapes.add(_NUMBERS.sub(rb"\\d{1,9}", re.escape(name)) + behind)
        if self._only is None:
            self._only, self._joined = name, joined
        self._found.setdefault(name)
        self._compile()

    def turn_to(self, host: bytes) -> None:
        """Keep the lines of another host, and nothing else."""
        self._only, self._first = host, False
        self._compile()

    def kept(self, data: bytes) -> bytes:
        """Return lines, each with its line end in front: marked where the host's label stands, or blank."""
        if self._only is None:
            return data
        data = self._mine.sub(rb"\1" + MARK.encode(), data)
        if not self._first:
            return self._unlabelled.sub(b"\n", data)
        return data if self._joined else self._other.sub(self._blank, data)

    def _blank(self, line: re.Match[bytes]) -> bytes:
        if len(self._found) <= MAX_HOSTS:
            self._found.setdefault(self._parts(line[3])[0])
        return b"\n" + line[2]

    @staticmethod
    def _parts(label: bytes) -> tuple[bytes, bytes]:
        parts = _PARTS.fullmatch(label)
        assert parts is not None, "what HOST matches"
        return parts[1], parts[2]

    def _compile(self) -> None:
        assert self._only is not None
        either = b"|".join(sorted(self._shapes))
        kept_host = re.escape(self._only) + rb"(?=:?[ \t])"
        mine = b"" if self._joined else kept_host
        self._mine = re.compile(rb"(\n\0?%b)(?=%b)(?=%b)" % (self._front, mine, either))
        self._other = re.compile(rb"(\n(\0?)%b)(?!%b)(%b)[^\n]*%b" % (self._front, kept_host, either, _REWRITTEN))
