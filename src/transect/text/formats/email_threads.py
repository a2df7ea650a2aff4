"""Format `email-threads`: a folder with a file for each mail, as mail programs save them (`.eml`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from transect.domain.errors import BadInput
from transect.text.formats import FORMATS, TicketFormat
from transect.text.formats.mbox import MAX_MAIL_BYTES
from transect.text.mail import BrokenMail
from transect.text.threads import MailOptions, threads
from transect.text.tickets import Rejected, Ticket


class _Folder:
    """The files below a folder, sorted by their paths; hidden ones and those in links to folders are not counted."""

    def __init__(self, path: Path) -> None:
        def unlisted(error: OSError) -> None:
            # Not its name, which may be that of a person.
            raise BadInput(f"{path}: a folder in it cannot be listed: {error.strerror}") from None

        self._top = path
        found = (
            Path(folder, name).relative_to(path)
            for folder, _, names in os.walk(path, onerror=unlisted)
            for name in names
        )
        self._files = sorted(str(file) for file in found if not any(part.startswith(".") for part in file.parts))

    def __len__(self) -> int:
        return len(self._files)

    def place(self, number: int) -> str:
        # Its name may be that of a person.
        return f"file {number + 1} of {len(self._files)}"

    def read(self, number: int, most: int | None = None) -> bytes:
        file = self._top / self._files[number]
        if not file.is_file():
            raise BrokenMail("no file that can be read")
        with file.open("rb") as stream:
            raw = stream.read(most or MAX_MAIL_BYTES + 1)
        if len(raw) > MAX_MAIL_BYTES:
            raise BrokenMail(f"more than {MAX_MAIL_BYTES} bytes")
        return raw

    def queue(self, number: int) -> str:
        parts = Path(self._files[number]).parts
        return os.fsencode(parts[0]).decode("utf-8", "replace") if len(parts) > 1 else ""


@FORMATS.register("email-threads")
class EmailThreads(TicketFormat[MailOptions]):
    """Mails of a folder; those that answer one another are a ticket.

    Where no field of a mail names the queue, it is the first folder below the given one.
    """

    options = MailOptions

    def read(self, path: Path | None, given: MailOptions, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield the ticket of each thread. Raises BadInput for what is no folder."""
        if path is None or not path.is_dir():
            raise BadInput(f"{path}: no such folder; expected one with a file for each mail")
        yield from threads(_Folder(path), given)
