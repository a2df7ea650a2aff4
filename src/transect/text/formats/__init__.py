"""Formats of tickets: one file each. What reads one yields tickets, and what it could not read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from transect.domain.registry import Plugin, Registry
from transect.text.options import Options, checked
from transect.text.tickets import Rejected, Ticket

__all__ = ["FORMATS", "Generator", "TicketFormat"]


Given = TypeVar("Given", bound=Options)


class TicketFormat(Plugin, ABC, Generic[Given]):
    """Reads, or makes, tickets one after another; memory does not grow with their number.

    See `Generator` for those that are made up.
    """

    # Whether it takes a file or folder; one that does not makes its own tickets.
    reads = True
    # Whether what it yields was made up, which is said wherever it appears.
    synthetic = False
    # The model of the options that it has.
    options: type[Given]

    def check(self, options: dict[str, Any], where: str) -> None:
        """Raise BadInput, beginning with `where`, for options that cannot be used; reads no file."""
        checked(self.options, options, where)

    def tickets(self, path: Path | None, options: dict[str, Any], seed: int) -> Iterator[Ticket | Rejected]:
        """Yield each ticket, or why it could not be read. Raises BadInput for what is no such file."""
        return self.read(path, checked(self.options, options, "options"), seed)

    @abstractmethod
    def read(self, path: Path | None, given: Given, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield each ticket, or why it could not be read, with options that were checked."""


class Generator(TicketFormat[Given]):
    """A synthetic format also knows its best possible classifier.

    The `truth` of its tickets is, by label (`owner`, `queue`), view and names, how probable the
    likeliest label is from the ticket's text.
    """

    reads = False
    synthetic = True

    @abstractmethod
    def accuracy(self, options: dict[str, Any], seed: int, label: str) -> dict[str, Any]:
        """Return the Bayes-optimal accuracy of what `tickets` yields by view and names."""


FORMATS: Registry[TicketFormat[Any]] = Registry("ticket format", "transect.text.formats", TicketFormat)
