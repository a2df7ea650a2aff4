"""What a ticket is, and how a folder of the corpus stage stores many of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Message:
    """One message of a ticket.

    `author` is a name, an address, or after the corpus stage a hash; `role` is `customer`, `agent`
    or empty; `time` is ISO 8601 or empty. `people` are the spans of names in `text`: start, end
    (in code points) and the person's pseudonym, a word of letters.
    """

    text: str
    author: str = ""
    role: str = ""
    time: str = ""
    people: list[tuple[int, int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Ticket:
    """One ticket with its messages in the order of their time. `owner` and `queue` may be empty."""

    id: str
    messages: list[Message]
    owner: str = ""
    queue: str = ""
    # The language of its text, as ISO 639-1; empty where it is not known.
    language: str = ""
    # What a generator knows of it, see `transect.text.formats.Generator`.
    truth: dict[str, Any] = field(default_factory=dict)
    # Names and addresses of others that it belongs to, such as who got copies: they are looked for
    # in texts, and not kept.
    others: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Rejected:
    """A ticket that could not be read: the place in its file (a line, or a message's number), and why.

    `cause` is one of a closed list (`transect.text.tickets.CAUSES`); `detail` never holds text of the ticket.
    """

    place: str
    cause: str
    detail: str = ""


CAUSES = {
    "broken-encoding": "bytes that are no text in the encoding of the file",
    "broken-json": "a line that is no JSON",
    "broken-row": "a row of CSV with quotes that do not pair up",
    "broken-mail": "what is no mail, or cannot be taken apart",
    "broken-time": "a time that is not ISO 8601, or not as the option `time_format` says",
    "wrong-type": "a value of another type than expected",
    "missing-column": "a row with fewer columns than the header, or a ticket without a key it needs",
    "extra-column": "a row with more columns than the header",
    "too-large": "more characters than the option `largest` allows, or a queue of more than 200",
    "no-message": "a ticket without messages",
    "no-text": "messages without a letter or digit",
    "no-label": "neither owner nor queue, whichever the corpus is to tell",
    "duplicate-id": "a ticket whose id an earlier one has",
    "duplicate-message": "a mail whose Message-ID an earlier one has",
}


def rejected(place: str, cause: str, detail: str = "") -> Rejected:
    """Make an entry of the list. Raises KeyError for a cause that is not one of `CAUSES`."""
    CAUSES[cause]
    return Rejected(place, cause, detail)
