"""Mails become tickets: those that answer one another are one.

Two passes: the heads show which mails belong together, then each ticket's mails are read. Between them only a few
numbers are kept of each mail.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Protocol

from pydantic import Field

from transect.text.formats._options import ReadingOptions, cleaned
from transect.text.mail import MAX_HEAD_BYTES, BrokenMail, Head, body, head, same_subject
from transect.text.tickets import Message, Rejected, Ticket, rejected


class MailOptions(ReadingOptions):
    """Of the formats that read mails."""

    queue_header: str | None = Field(default="X-Queue", description="field with the queue")
    owner_header: str | None = Field(
        default="X-Owner", description="field with the owner; without one it is the last agent who wrote"
    )
    agents: list[str] = Field(default=[], description="addresses of agents, or ends of them such as @help.example.org")


class Store(Protocol):
    """Where mails lie, by number from 0."""

    def __len__(self) -> int: ...

    def place(self, number: int) -> str:
        """Name a mail without a word of it."""

    def read(self, number: int, most: int | None = None) -> bytes:
        """Return its bytes, `most` of them. Raises BrokenMail for one that is too large, and OSError."""

    def queue(self, number: int) -> str:
        """Return the queue named by its place, or nothing."""


class _Groups:
    """Groups of numbers (union-find), each named by its smallest number."""

    def __init__(self) -> None:
        self._parent = array("q")

    def add(self) -> int:
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def of(self, number: int) -> int:
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def join(self, first: int, second: int) -> None:
        low, high = sorted((self.of(first), self.of(second)))
        self._parent[high] = low


def _key(text: str) -> int:
    raw = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest())


def _grouped(store: Store) -> tuple[dict[int, array[int]], list[Rejected]]:
    """Return the mails of each thread, in the order of the store, and what is none."""
    groups, wrong = _Groups(), []
    known: dict[int, int] = {}
    mails: dict[int, int] = {}
    seen: set[int] = set()
    for number in range(len(store)):
        try:
            facts = head(store.read(number, MAX_HEAD_BYTES))
        except (BrokenMail, OSError) as error:
            detail = str(error) if isinstance(error, BrokenMail) else type(error).__name__
            wrong.append(rejected(store.place(number), "broken-mail", detail))
            continue
        key = _key(facts.id)
        if facts.id and key in seen:
            wrong.append(rejected(store.place(number), "duplicate-message"))
            continue
        if facts.id:
            seen.add(key)
        group = mails[number] = groups.add()
        subject, is_reply = same_subject(facts.subject)
        names = [_key(message_id) for message_id in (facts.id, *facts.references) if message_id]
        if subject:
            # A mail that only repeats a subject is one of its own; it begins what replies go to.
            about = _key(f"subject {subject}")
            if is_reply and not facts.references:
                names.append(about)
            elif not is_reply:
                known[about] = group
        for name in names:
            groups.join(known.setdefault(name, group), group)
    found: dict[int, array[int]] = {}
    for number, group in mails.items():
        found.setdefault(groups.of(group), array("q")).append(number)
    return found, wrong


def threads(store: Store, options: MailOptions) -> Iterator[Ticket | Rejected]:
    """Yield the ticket of each thread, in the order in which they begin in the store."""
    found, wrong = _grouped(store)
    yield from wrong
    for numbers in found.values():
        yield from _ticket(store, numbers, options)


def _ticket(store: Store, numbers: Sequence[int], options: MailOptions) -> Iterator[Ticket | Rejected]:
    read: list[tuple[Head, str, int]] = []
    size = 0
    for number in numbers:
        try:
            raw = store.read(number)
            facts, text = head(raw), body(raw, quotes=options.replies == "keep")
        except (BrokenMail, OSError) as error:
            detail = str(error) if isinstance(error, BrokenMail) else type(error).__name__
            yield rejected(store.place(number), "broken-mail", detail)
            continue
        size += len(text)
        if size > options.largest:
            yield rejected(
                store.place(numbers[0]), "too-large", f"{size} characters or more, at most {options.largest}"
            )
            return
        read.append((facts, text, number))
    if not read:
        return
    if all(facts.time for facts, _, _ in read):
        read.sort(key=lambda mail: mail[0].time)
    messages = [
        Message(text=text, author=facts.author, time=facts.time, role=_role(facts, options.agents))
        for facts, text, _ in read
    ]
    first = read[0][0]
    messages[0].text = f"{first.subject}\n\n{messages[0].text}"
    agents = [message.author for message in messages if message.role == "agent"]
    yield cleaned(
        Ticket(
            id=first.id or store.place(read[0][2]),
            messages=messages,
            owner=_last(read, options.owner_header) or (agents[-1] if agents else ""),
            queue=_last(read, options.queue_header) or store.queue(read[0][2]),
            others=[person for facts, _, _ in read for person in facts.others],
        ),
        options,
        store.place(read[0][2]),
    )


def _last(read: Sequence[tuple[Head, str, int]], name: str | None) -> str:
    values = [facts.field(name) for facts, _, _ in read] if name else []
    return next((value for value in reversed(values) if value), "")


def _role(facts: Head, agents: list[str]) -> str:
    if not agents:
        return ""
    ends = tuple(address.casefold() for address in agents)
    return "agent" if facts.author.casefold().rstrip("> ").endswith(ends) else "customer"
