"""Format `mbox`: one file of mails, each after a line that begins with `From ` (RFC 4155)."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from pathlib import Path

from transect.domain.errors import BadInput
from transect.text.formats import FORMATS, TicketFormat
from transect.text.mail import BrokenMail
from transect.text.reading import need_file
from transect.text.threads import MailOptions, threads
from transect.text.tickets import Rejected, Ticket

_BEGIN = b"From "
_DATED = re.compile(rb"From \S+ +[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d")
_QUOTED = re.compile(rb"\n>(>*From )")
_PIECE = 1 << 16
# With its attachments, in bytes.
MAX_MAIL_BYTES = 1 << 26


class _File:
    """The mails of a file, by where they begin and end."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("rb")
        self._bounds = array("q")
        at, after_empty, whole = 0, True, True
        while line := self._stream.readline(_PIECE):
            # After an empty line; after a mail that was cut short, one with a date in it.
            if whole and line.startswith(_BEGIN) and (after_empty or _DATED.match(line)):
                self._bounds += array("q", (at, at + len(line)))
            if not self._bounds and line.strip():
                raise BadInput(
                    f"{path}: the first line with text does not begin with 'From ': expected a file of "
                    "mails in the format mbox"
                )
            after_empty = whole and not line.strip()
            whole = line.endswith(b"\n")
            at += len(line)
        self._bounds.append(at)

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def place(self, number: int) -> str:
        return f"mail {number + 1}"

    def read(self, number: int, most: int | None = None) -> bytes:
        begin, end = self._bounds[2 * number + 1], self._bounds[2 * number + 2]
        if most is None and end - begin > MAX_MAIL_BYTES:
            raise BrokenMail(f"{end - begin} bytes, at most {MAX_MAIL_BYTES}")
        self._stream.seek(begin)
        raw = self._stream.read(min(end - begin, most or MAX_MAIL_BYTES))
        # What would have looked like the begin of a mail was quoted.
        return _QUOTED.sub(rb"\n\1", raw)

    def queue(self, number: int) -> str:
        return ""

    def close(self) -> None:
        self._stream.close()


@FORMATS.register("mbox")
class Mbox(TicketFormat[MailOptions]):
    """Mails of one file; those that answer one another are a ticket."""

    options = MailOptions

    def read(self, path: Path | None, given: MailOptions, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield the ticket of each thread. Raises BadInput for what is no mbox."""
        store = _File(need_file(path))
        try:
            yield from threads(store, given)
        finally:
            store.close()
