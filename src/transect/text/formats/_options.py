"""Options that all formats have which read files, and what is done with them."""

from __future__ import annotations

import codecs
import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from transect.text.options import Options
from transect.text.replies import clean
from transect.text.tickets import Rejected, Ticket, rejected

ROLES = ("customer", "agent", "")


class ReadingOptions(Options):
    """Of any format that reads."""

    largest: int = Field(
        default=1_000_000, ge=1, le=1 << 30, description="characters of a ticket; one with more is rejected"
    )
    replies: Literal["drop", "keep"] = Field(default="drop", description="what a message quotes of earlier ones")
    signatures: Literal["drop", "keep"] = Field(default="drop", description="what follows a line `--` in a message")


class FileOptions(ReadingOptions):
    """Of a format that reads a text file."""

    encoding: str | None = Field(default=None, description="of a file without byte order mark; null: UTF-8")

    @field_validator("encoding")
    @classmethod
    def _known(cls, given: str | None) -> str | None:
        if given is not None:
            try:
                "".encode(given)
                codecs.lookup(given)
            except LookupError:
                raise ValueError("no encoding that Python knows") from None
        return given


def _usable(form: str) -> str:
    # Whatever it cannot read of what it wrote itself it can read of nobody.
    try:
        datetime.strptime(datetime.now(UTC).strftime(form), form)
    except (ValueError, re.error):
        raise ValueError("no format of times for `strptime`") from None
    return form


TimeFormat = Annotated[str, AfterValidator(_usable)]


class TableOptions(FileOptions):
    """Of a format that reads rows."""

    delimiter: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="between columns; null: that of comma, semicolon, tab and | which the header has",
    )


def cleaned(ticket: Ticket, options: ReadingOptions, place: str) -> Ticket | Rejected:
    """Return the ticket with what its messages say themselves, or why it is not read."""
    if not ticket.messages:
        return rejected(place, "no-message")
    size = 0
    for message in ticket.messages:
        size += len(message.text)
    if size > options.largest:
        return rejected(place, "too-large", f"{size} characters, at most {options.largest}")
    for message in ticket.messages:
        text = message.text
        # Nothing else has tags, or a line that could be a reply's.
        if "<" in text or "&" in text or "\n" in text or "\r" in text:
            message.text = clean(text, replies=options.replies, signatures=options.signatures)
    return ticket


def moment(given: object, form: str | None = None) -> str:
    """Return a time as ISO 8601 in UTC, empty for none; without a zone it is UTC.

    `given`: ISO 8601, seconds since 1970, or text as `form` says (`datetime.strptime`). Raises
    ValueError for anything else.
    """
    if given is None or given == "":
        return ""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            return datetime.fromtimestamp(given, UTC).isoformat()
        if not isinstance(given, str):
            raise ValueError("no time")
        text = given.strip()
        time = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
        return zoned.astimezone(UTC).isoformat()
    except (OverflowError, OSError):
        raise ValueError("a time out of range") from None
