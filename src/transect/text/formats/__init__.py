"""Formats of tickets: one file each. What reads one yields tickets, and what it could not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from transect.domain.registry import Registry
from transect.text.tickets import Rejected, Ticket

__all__ = ["FORMATS", "Generator", "TicketFormat"]


class TicketFormat(Protocol):
    """Reads, or makes, tickets one after another; memory does not grow with their number.

    `reads`: whether it takes a file or folder; one that does not makes its own. `synthetic`:
    whether what it yields was made up, which is said wherever it appears; see `Generator`.
    """

    reads: bool
    synthetic: bool

    def check(self, options: dict[str, Any], where: str) -> None:
        """Raise BadInput, beginning with `where`, for options that cannot be used; reads no file."""
        ...

    def tickets(self, path: Path | None, options: dict[str, Any], seed: int) -> Iterator[Ticket | Rejected]:
        """Yield each ticket, or why it could not be read. Raises BadInput for what is no such file."""
        ...


class Generator(TicketFormat, Protocol):
    """A synthetic format also knows its best possible classifier.

    The `truth` of its tickets is, by label (`owner`, `queue`), view and names, how probable the
    likeliest label is from the ticket's text.
    """

    def accuracy(self, options: dict[str, Any], seed: int, label: str) -> dict[str, Any]:
        """Return the Bayes-optimal accuracy of what `tickets` yields by view and names."""
        ...


FORMATS: Registry[TicketFormat] = Registry("ticket format", "transect.text.formats")
