"""Lines out of a log of any size: cleaned in bulk, and only those that match a pattern."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from transect.hpc.hosts import HOST, MARK, Hosts
from transect.hpc.prefilter import LinePattern

# Longest part of a line that is looked at, in bytes.
CLIP = 16_384

_CHUNK = 1 << 20
_BOMS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|[@-Z\\^_=>78])")

_WORD = re.compile(rb"[A-Za-z0-9\x80-\xff]")

# A lone carriage return (a progress bar) breaks a line without counting as one. NUL bytes are
# dropped from the input, so newline + NUL can stand for it.
_SOFT = b"\n\0"

# `kubectl logs --timestamps` and CI: "2026-01-31T12:00:00.123Z ".
_TIME = r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+\-]\d\d:?\d\d)?[ \t]+(?=\S))?+"

# `srun -l`: "3: ". Open MPI --tag-output: "[1,3]<stdout>:", of PRRTE "[prterun-host-17@1,3]<stdout>: ", with time
# stamps "Mon Nov 23 10:00:00 2026[1,3]<stdout>:"; indented where a page quotes them. Intel MPI: "[3] ". torchrun --tee: "[default3]:".
_LABEL = (
    r"(?:[ \t]*+\d{1,7}:[ \t]"
    r"|[ \t]*+(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    r"(?:\[(?:[\w.\-]{1,120}@)?\d{1,9},\d{1,7}\](?:\[[\w.\-]{1,120}:\d{1,9}\])?(?:<std(?:out|err|diag)>)?"
    r"|<std(?:out|err|diag)>):[ \t]?"
    r"|\[\d{1,7}\]:?[ \t]|\[default\d{1,7}\]:)?+"
)
_LABELS = rf"{_LABEL}(?:{MARK}{HOST}{_LABEL})?+"
_NEW_HOST = re.compile(rf"{_LABEL}({HOST}){_LABEL}".encode())
# mpirun writes it once more where a program flushes within a line.
_TAG = re.compile(rb"\[(?:[\w.\-]{1,120}@)?\d{1,9},\d{1,7}\]<std(?:out|err|diag)>:")
_RANK = re.compile(rb"\[(?:default)?(?:[^\],]*,)?(\d+)\]|(?<![\w.\-])(\d+):[ \t]\Z")


@dataclass(slots=True)  # not frozen: that would take three times as long to make, for every line
class Line:
    """A line without its rank label, colours and line end, at most `CLIP` bytes of it."""

    number: int
    text: str
    rank: int | None = None
    cut: bool = False  # the last line of a file that does not end with a line end
    # Which of the lists of alternatives it was found by, from 1 on; 0: the pattern has but one.
    found_by: int = 0
    # What stands in front of it, and is a host's label if the line begins the output of a benchmark.
    host: bytes = b""


def line_pattern(*alternatives: Sequence[str], hosts: bool = False) -> LinePattern | re.Pattern[bytes]:
    """Compile what `Reader` searches for: lists of alternatives, the first of which are tried first.

    Nothing stands for every line that is not empty. With `hosts` an alternative may stand behind what looks like
    a host's label, too.
    """
    if not alternatives:
        # The literal newline in front lets `re` skip from line to line at memory speed.
        return re.compile(rf"\n\0?{_TIME}({_LABELS})(?=[^\n])".encode())
    either = ["|".join(patterns) for patterns in alternatives if patterns]
    if len(alternatives) > 1:
        either = [f"({'|'.join(patterns) or '(?!)'})" for patterns in alternatives]
    labels = rf"{_LABELS}(?:{HOST}{_LABEL})??" if hosts else _LABELS
    return LinePattern(rf"\n\x00?{_TIME}({labels})[ \t]*+(?:{'|'.join(either)})")


def excerpt(text: str, width: int = 120) -> str:
    """Shorten a log line for a message and make its control characters visible."""
    clean = " ".join(text[: width * 4].split())
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in clean)
    return clean if len(clean) <= width else clean[: width - 1] + "…"


def _rank(label: bytes) -> int | None:
    """Return the rank of a label, the program's own where a host's label stands before it."""
    found = _RANK.search(label.rpartition(MARK.encode())[2])
    return None if found is None else int(found[1] or found[2])


def _text(raw: bytes) -> str:
    return raw[:CLIP].lstrip(b"\0" + MARK.encode()).rstrip().decode("utf-8", "replace")


class Reader:
    """Searches a stream for lines; holds about two megabytes, however long the file or a line.

    `pattern` may be changed between two calls of `next_line`. `hosts` are those of an earlier reading.
    """

    def __init__(self, stream: BinaryIO, pattern: LinePattern | re.Pattern[bytes], hosts: Hosts | None = None) -> None:
        self.pattern = pattern
        self.hosts = Hosts(_TIME + _LABEL) if hosts is None else hosts
        self.first_line = ""
        self.size = 0
        self.head = b""
        self._stream = stream
        self._decoder: codecs.IncrementalDecoder | None = None
        self._buffer = b""  # every line in it has its newline in front
        self._position = 0
        self._end = 0
        self._counted = 0  # line ends before this place are in _number
        self._number = 0
        self._match_start = 0
        self._begin = 0
        self._before = ""  # last line of earlier buffers that is not empty
        self._skipping = False
        self._cut = False
        self._over = False
        self._soft = False  # whether a carriage return ever stood alone

    def next_line(self) -> Line | None:
        """Return the next line that matches `pattern`, or None at the end of the stream."""
        while True:
            match = self.pattern.search(self._buffer, self._position, self._end)
            if match is None:
                if not self._fill():
                    # What one pattern passed over is no other's to be read once more.
                    self._position = self._end
                    return None
                continue
            start = match.start()
            stop = self._buffer.find(b"\n", start + 1, self._end)
            last = stop < 0
            stop = self._end if last else stop
            self._count(start + 1)
            self._match_start, self._position = start, stop
            begin = self._begin = match.end(1)
            text = _text(self._buffer[begin : min(stop, begin + CLIP)])
            rank, host = None, b""
            if begin > match.start(1):
                new = _NEW_HOST.fullmatch(match[1])
                rank, host = (_rank(match[1]), b"") if new is None else (None, new[1])
                if (again := _TAG.search(match[1])) is not None:
                    text = text.replace(again[0].decode(), "")
            found_by = (match.lastindex or 1) - 1
            return Line(self._number, text, rank, last and self._cut, found_by, host)

    def whole_line(self) -> str:
        """Return the present line beyond `CLIP`; of one longer than a megabyte, its beginning."""
        raw = self._buffer[self._begin : self._position]
        return raw.lstrip(b"\0" + MARK.encode()).rstrip().decode("utf-8", "replace")

    def adopt(self, host: bytes, *, joined: bool) -> None:
        """Take what stands in front of the line for a host's label, and read again from that line on."""
        self.hosts.adopt(host, joined=joined)
        kept = self.hosts.kept(self._buffer[self._match_start : self._end])
        self._buffer = self._buffer[: self._match_start] + kept + self._buffer[self._end :]
        self._position, self._end = self._match_start, self._match_start + len(kept)

    def last_line(self, before_match: bool = False) -> str:
        """Return the last line that is not blank or a rule: of all read, or before the match."""
        end = self._match_start if before_match else self._end
        tail = self._buffer[max(0, end - CLIP) : end].rstrip(b"\n\0 \t")
        for raw in reversed(tail.split(b"\n")):
            if _WORD.search(raw):
                return _text(raw)
        return self._before

    def _count(self, upto: int) -> None:
        buffer, start = self._buffer, self._counted
        self._number += buffer.count(b"\n", start, upto)
        if self._soft:
            self._number -= buffer.count(_SOFT, start, upto)
        self._counted = upto

    def _fill(self) -> bool:
        if self._over:
            return False
        self._count(self._end)
        self._before = self.last_line()
        carry = self._buffer[self._end :]
        self._counted = self._position = self._match_start = 0
        while True:
            piece = self._read()
            if piece is None:
                self._over = True
                self._cut = carry != b"\n"
                self._buffer = self.hosts.kept(carry)
                self._end = len(self._buffer) if self._cut else 0
                return self._end > 0
            data = (carry or b"\n") + piece
            end = data.rfind(b"\n")
            if end > 0:
                kept = self.hosts.kept(data[:end])
                self._buffer, self._end = kept + data[end:], len(kept)
                self._remember_first()
                return True
            self._skipping = len(data) > CLIP
            carry = data[: CLIP + 1]

    def _remember_first(self) -> None:
        if not self.first_line:
            self.first_line = _text(self._buffer[: self._end].lstrip(b"\n\0 \t").split(b"\n", 1)[0])

    def _read(self) -> bytes | None:
        # The rest of the line comes along, so that no escape sequence or CRLF is split.
        raw = self._stream.read(_CHUNK)
        if not raw:
            return None
        raw += self._stream.readline(CLIP)
        if self.size == 0:
            self.head = raw[:8192]
            for bom, name in _BOMS:
                if raw.startswith(bom):
                    self._decoder = codecs.getincrementaldecoder(name)("replace")
            raw = raw.removeprefix(codecs.BOM_UTF8)
        self.size += len(raw)
        if self._decoder is not None:
            raw = self._decoder.decode(raw).encode("utf-8", "replace")
        return self._clean(raw)

    def _clean(self, raw: bytes) -> bytes:
        if b"\0" in raw:
            raw = raw.translate(None, b"\0")
        if b"\x1b" in raw:
            raw = _ANSI.sub(b"", raw)
        if b"\r" in raw:
            raw = raw.replace(b"\r\n", b"\n").replace(b"\r", _SOFT)
            self._soft = self._soft or _SOFT in raw
        if self._skipping:
            place = raw.find(b"\n")
            if place < 0:
                return b""
            self._skipping = False
            raw = raw[place:]
        return raw
