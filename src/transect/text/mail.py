"""One mail (RFC 5322): its author, time and recipients, and its text without quoted ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.header import decode_header
from email.message import Message as Part
from email.parser import BytesHeaderParser, BytesParser
from email.policy import compat32
from email.utils import parsedate_to_datetime
from typing import Any

from transect.text.markup import text_of_html

# Of the head of a mail, in bytes; more is not looked at.
MAX_HEAD_BYTES = 1 << 18
_ID = re.compile(r"<[^<>\s]{1,998}>")
_REPLY = re.compile(r"\s*(?:re|aw|antw|antwort|sv|wg|fw|fwd)\s*(?:\[\d+\]|\(\d+\))?\s*:", re.IGNORECASE)
MAX_PARTS, MAX_BOUNDARIES = 1000, 100


class BrokenMail(ValueError):
    """A mail that cannot be read; the message quotes nothing of it."""


@dataclass(slots=True)
class Head:
    """What the head of a mail says; `time` is ISO 8601 in UTC, or empty."""

    id: str
    references: list[str]
    subject: str
    author: str
    time: str
    others: list[str]
    fields: Part

    def field(self, name: str) -> str:
        """Return one field of the head, empty where there is none."""
        return _decoded(_raw(self.fields, name))


def head(raw: bytes) -> Head:
    """Read the head of a mail. Raises BrokenMail for what has none."""
    try:
        fields = BytesHeaderParser(policy=compat32).parsebytes(raw[:MAX_HEAD_BYTES])
    except Exception as error:
        raise BrokenMail(type(error).__name__) from None
    if not any(fields.get(name) for name in ("From", "Message-ID", "Date", "Subject", "Received")):
        raise BrokenMail("none of the fields From, Message-ID, Date, Subject, Received")
    answered = f"{_raw(fields, 'References')} {_raw(fields, 'In-Reply-To')}"
    ids = _ID.findall(_raw(fields, "Message-ID"))
    people = [_decoded(_raw(fields, name)) for name in ("Reply-To", "To", "Cc", "Bcc")]
    return Head(
        id=ids[0] if ids else "",
        references=_ID.findall(answered),
        subject=_decoded(_raw(fields, "Subject")),
        author=_decoded(_raw(fields, "From")),
        time=_time(_raw(fields, "Date")),
        others=[person for many in people for person in _people(many)],
        fields=fields,
    )


def same_subject(subject: str) -> tuple[str, bool]:
    """Return a subject without marks of a reply, and whether there were any."""
    remaining = subject
    while found := _REPLY.match(remaining):
        remaining = remaining[found.end() :]
    return " ".join(remaining.casefold().split()), len(remaining) < len(subject)


def body(raw: bytes, *, quotes: bool) -> str:
    """Return the text of a mail: its plain text, else that of its HTML, without attachments.

    `quotes`: whether what HTML marks as quoted stays. Raises BrokenMail.
    """
    if raw.lower().count(b"boundary=") > MAX_BOUNDARIES:
        # The parser compares each line with all of them.
        raise BrokenMail(f"more than {MAX_BOUNDARIES} boundaries of parts")
    try:
        mail = BytesParser(policy=compat32).parsebytes(raw)
        found = _texts(mail)
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        # Whatever a hostile mail makes of the parser; RecursionError is one of many.
        raise BrokenMail(type(error).__name__) from None
    plain = [text for kind, text in found if kind == "text/plain"]
    if any(text.strip() for text in plain):
        return "\n".join(plain)
    markup = "\n".join(text for kind, text in found if kind == "text/html")
    text = text_of_html(markup, quotes=quotes)
    return text if text.strip() else text_of_html(markup, quotes=True)


def _texts(mail: Part) -> list[tuple[str, str]]:
    """Return type and text of the parts that a reader sees first."""
    found = []
    waiting: list[Any] = [mail]
    seen = 0
    while waiting and seen < MAX_PARTS:
        part = waiting.pop()
        seen += 1
        if part.get_content_disposition() == "attachment":
            continue
        kind = part.get_content_type()
        if part.is_multipart():
            # A mail within a mail is no part of what this one says.
            if kind != "message/rfc822":
                waiting += reversed(part.get_payload())
        elif kind in ("text/plain", "text/html"):
            raw = part.get_payload(decode=True) or b""
            found.append((kind, _text(raw, part.get_content_charset())))
    return found


def _text(raw: bytes, charset: str | None) -> str:
    # Many a mail says ASCII, or nothing, and is not.
    for name in (charset, "utf-8"):
        try:
            return raw.decode(name or "utf-8")
        except (LookupError, UnicodeError, ValueError):
            continue
    from charset_normalizer import from_bytes

    best = from_bytes(raw[: 1 << 16]).best()
    return raw.decode(best.encoding if best else "latin-1", "replace")


def _raw(fields: Part, name: str) -> str:
    """Return a field as it stands, empty where there is none; bytes that are no ASCII as text."""
    wanted = name.lower()
    found = next((value for key, value in fields.raw_items() if key.lower() == wanted), "")
    # `get` would give the mark of what cannot be read for each such byte, and names would be lost.
    if found.isascii():
        return found
    raw = found.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        # Too short to guess from; what European programs wrote.
        return raw.decode("cp1252", "replace")


def _decoded(text: str) -> str:
    if "=?" not in text:
        return " ".join(text.split())
    pieces = []
    try:
        for piece, charset in decode_header(text):
            pieces.append(piece if isinstance(piece, str) else _text(piece, charset))
    except Exception:
        # Broken base64, for one: then it is read as it stands.
        return " ".join(text.split())
    return " ".join("".join(pieces).split())


def _time(date: str) -> str:
    try:
        time = parsedate_to_datetime(date)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return ""


def _people(field: str) -> list[str]:
    """Return the people of a list of addresses; a comma within quotes parts nobody."""
    if not field:
        return []
    return [person.strip() for person in re.findall(r'(?:"[^"]*"|[^",])+', field) if person.strip()]
