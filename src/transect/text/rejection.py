"""Why a ticket, or a part of one, was not read: a closed list."""

from __future__ import annotations

from transect.text.tickets import Rejected

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
