"""Options that all formats have which read files, and what is done with them."""

from __future__ import annotations

import codecs
import html
import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from transect.text.markup import is_html, text_of_html
from transect.text.options import Options
from transect.text.tickets import Rejected, Ticket, rejected

# Patterns are bounded and taken line by line: those of known libraries take hours for a hostile text.
# Lines of a reply's head are shorter; longer ones are not looked at.
MAX_LINE = 400
_WROTE = re.compile(
    r"\s*(?:On\b.{4,}\bwrote:|Am\b.{4,}\bschrieb\b.*:|.{2,}\b(?:wrote|schrieb) (?:on|am)\b.*:)\s*", re.IGNORECASE
)
_BEGINS = re.compile(r"\s*(?:On|Am)\b", re.IGNORECASE)
_ORIGINAL = re.compile(
    r"\s*[-_]{2,}\s*(?:Original Message|Original Appointment|Reply Message|Urspr(?:ü|ue)ngliche Nachricht|"
    r"Originalnachricht|Original-Nachricht)\s*[-_]*\s*",
    re.IGNORECASE,
)
# Left by an export that took only the tags out.
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_FROM = re.compile(r"\s*[*_]*(?:From|Von)\s*:", re.IGNORECASE)
_SENT = re.compile(r"\s*[*_]*(?:Sent|Date|Gesendet|Datum)\s*:", re.IGNORECASE)
_SUBJECT = re.compile(r"\s*[*_]*(?:Subject|Betreff)\s*:", re.IGNORECASE)
_DEVICE = re.compile(
    r"\s*(?:Sent from my \w[\w ]{,30}|Sent from Outlook.{,40}|Get Outlook for .{,40}|"
    r"Von meinem \w[\w ]{,30} gesendet)\.?\s*",
    re.IGNORECASE,
)


def clean(text: str, *, replies: str = "drop", signatures: str = "drop") -> str:
    """Return the text of a message itself: no tags, and unless they are to `keep`, neither
    quoted replies nor the signature.
    """
    if is_html(text):
        written = text_of_html(text, quotes=replies == "keep")
        # All of it was quoted, as in a forwarded mail: then that is what it says.
        text = written if written.strip() else text_of_html(text, quotes=True)
    elif "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    if "\n" not in text and "\r" not in text:
        return text
    if replies == "drop":
        text = without_replies(text)
    if signatures == "drop":
        text = without_signature(text)
    return text


def without_replies(text: str) -> str:
    """Leave out quoted lines and their heads, and all from the head of a reply below that is not quoted.

    Where nothing would be left, only the marks of quotation go.
    """
    lines = text.splitlines()
    kept: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.lstrip().startswith(">"):
            number += 1
            continue
        head = _head(lines, number)
        if head:
            number += head
            if not _quoted_follows(lines, number):
                break
            continue
        kept.append(line)
        number += 1
    if not any(line.strip() for line in kept):
        kept = [line.lstrip().lstrip("> ") for line in lines]
    return "\n".join(kept)


def _head(lines: list[str], number: int) -> int:
    """Return of how many lines the head of a quoted mail is that begins here; 0: none does."""
    line = lines[number]
    if len(line) > MAX_LINE:
        return 0
    if _ORIGINAL.fullmatch(line) or _WROTE.fullmatch(line):
        return 1
    after = lines[number + 1] if number + 1 < len(lines) else ""
    folded = f"{line.rstrip()} {after.strip()}"
    if _BEGINS.match(line) and len(after) <= MAX_LINE and _WROTE.fullmatch(folded):
        return 2
    if not _FROM.match(line):
        return 0
    near = [following for following in lines[number + 1 : number + 7] if len(following) <= MAX_LINE]
    # A journey too is from somewhere at a date; it has no subject.
    return int(all(any(map(field.match, near)) for field in (_SENT, _SUBJECT)))


def _quoted_follows(lines: list[str], number: int) -> bool:
    after = (line.lstrip() for line in lines[number : number + 4])
    return next((line.startswith(">") for line in after if line), False)


def without_signature(text: str) -> str:
    """Leave out all from a line `-- ` on (RFC 3676, 4.3), and what a telephone adds by itself."""
    kept: list[str] = []
    for line in text.splitlines():
        if line.rstrip() == "--" and any(previous.strip() for previous in kept):
            break
        if len(line) > MAX_LINE or not _DEVICE.fullmatch(line):
            kept.append(line)
    return "\n".join(kept)


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
