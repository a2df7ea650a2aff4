"""Tickets of any format become a corpus: normalised, without identities, one after another."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from transect.text.corpus_columns import Columns
from transect.text.normalise import normalise
from transect.text.people import People, Span
from transect.text.redaction import Counts, redact, replace_spans
from transect.text.salt import Salt
from transect.text.tickets import Message, Rejected, Ticket, rejected

# It is the name of a class, and stands in tables and charts.
MAX_QUEUE = 200
_LETTER = re.compile(r"[^\W_]")
_LANGUAGE = re.compile(r"[a-z]{2,3}")


class PeopleNamed(Exception):
    """A ticket names people although tickets were expected to name nobody."""


def gather(tickets: Iterable[Ticket | Rejected], salt: Salt) -> People:
    """Return everybody who wrote, owns or got a ticket."""
    people = People(salt)
    for ticket in tickets:
        if isinstance(ticket, Ticket):
            for person in _present(ticket):
                people.add(person)
    return people


def _present(ticket: Ticket) -> set[str]:
    people = {message.author for message in ticket.messages}
    people.add(ticket.owner)
    people.update(ticket.others)
    return {person for person in people if person and not person.isspace()}


class Corpus:
    """Takes tickets, and says of each what is to be written, or why it is rejected.

    `people`: those whose names are looked for; None: the tickets name nobody, else `PeopleNamed` is
    raised by the first that does.
    """

    def __init__(self, *, label: str, redacts: bool, salt: Salt, people: People | None) -> None:
        self._label, self._redacts, self._salt, self._people = label, redacts, salt, people
        self._identities: dict[str, str] = {}
        self._queues: dict[str, str] = {}
        self.columns = Columns(label)
        self.causes: Counter[str] = Counter()
        self.read = 0

    @property
    def people(self) -> int:
        """How many people are known."""
        return len(self._people) if self._people is not None else 0

    def lines(self, tickets: Iterable[Ticket | Rejected], reject: Callable[[Rejected], None]) -> Iterator[str]:
        """Yield a line of JSON for each ticket that is taken; `reject` gets the others."""
        for ticket in tickets:
            self.read += 1
            taken = ticket if isinstance(ticket, Rejected) else self._line(ticket)
            if isinstance(taken, str):
                yield taken
            else:
                self.causes[taken.cause] += 1
                reject(taken)

    def _line(self, ticket: Ticket) -> str | Rejected:
        place = f"ticket {self.read}"
        present = _present(ticket)
        if present and self._people is None:
            raise PeopleNamed
        queue = self._queue(ticket.queue) if ticket.queue else ""
        owner = self._identity(ticket.owner) if ticket.owner else ""
        label = queue if self._label == "queue" else owner
        if not label:
            return rejected(place, "no-label", f"no {self._label}")
        if len(queue) > MAX_QUEUE:
            return rejected(place, "too-large", f"a queue of {len(queue)} characters")
        counts = Counts()
        try:
            messages = [self._message(message, present, counts) for message in ticket.messages]
        except ValueError:
            return rejected(place, "broken-time")
        messages = [message for message in messages if message["text"]]
        if not _says_anything(messages):
            return rejected(place, "no-text" if ticket.messages else "no-message")
        # Of `de-AT` the language.
        language = re.split("[-_]", ticket.language.strip().lower(), maxsplit=1)[0]
        line: dict[str, Any] = {"id": self._salt.ticket(ticket.id), "messages": messages}
        if owner:
            line["owner"] = owner
        if queue:
            line["queue"] = queue
        if _LANGUAGE.fullmatch(language):
            line["language"] = language
        if ticket.truth:
            line["truth"] = ticket.truth
        self.columns.add(line, label, counts, self.read)
        return _encode(line) + "\n"

    def _message(self, message: Message, present: set[str], counts: Counts) -> dict[str, Any]:
        text = normalise(message.text)
        if self._redacts:
            text = redact(text, counts)
        spans = self._people.find(text, present) if self._people is not None else []
        if message.people:
            given = [(normalise(message.text[a:b]), name) for a, b, name in message.people]
            spans = _with(spans, given, text)
        counts.names += len(spans)
        if spans and self._redacts:
            text, spans = replace_spans(text, spans)
        fields: dict[str, Any] = {}
        if message.author and (author := self._identity(message.author)):
            fields["author"] = author
        if message.role:
            fields["role"] = message.role
        if message.time:
            datetime.fromisoformat(message.time)
            fields["time"] = message.time
        fields["text"] = text
        if spans:
            fields["people"] = spans
        return fields

    def _identity(self, person: str) -> str:
        """Return the hash of a person; nothing for a name of nothing but space."""
        known = self._identities.get(person)
        if known is None:
            known = self._salt.identity(person) if normalise(person) else ""
            self._identities[person] = known
        return known

    def _queue(self, given: str) -> str:
        """Return a queue's name; the hash of one that names a person, an address or a number."""
        known = self._queues.get(given)
        if known is None:
            known = normalise(given).replace("\n", " ")
            person = self._people is not None and self._people.find(known)
            # Names of classes stand in records and reports, whatever becomes of the texts.
            if person or redact(known, Counts()) != known:
                known = self._salt.identity(known)
            self._queues[given] = known
        return known


def _says_anything(messages: list[dict[str, Any]]) -> bool:
    # Nearly always the first character decides.
    return any(message["text"][0].isalnum() or _LETTER.search(message["text"]) for message in messages)


def _with(spans: list[Span], given: list[tuple[str, str]], text: str) -> list[Span]:
    """Add the names that the format told, where they are now in the text."""
    added, at = [], 0
    for name, pseudonym in given:
        start = text.find(name, at) if name else -1
        if start < 0:
            continue
        at = start + len(name)
        if all(at <= begin or end <= start for begin, end, _ in spans):
            added.append((start, at, pseudonym))
    return sorted([*spans, *added])


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
