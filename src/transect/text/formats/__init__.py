"""Formats of tickets: one file each. What reads one yields tickets, and what it could not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from transect.domain.registry import Registry
from transect.text.tickets import Rejected, Ticket

__all__ = ["FORMATS", "TicketFormat"]


class TicketFormat(Protocol):
    """Reads, or makes, tickets one after another; memory does not grow with their number.

    `reads`: whether it takes a file or folder; one that does not makes its own. `synthetic`:
    whether what it yields was made up, which is said wherever it appears.
    """

    reads: bool
    synthetic: bool

    def check(self, options: dict[str, Any], where: str) -> None:
        """Raise BadInput, beginning with `where`, for options that cannot be used; reads no file."""
        ...

    def tickets(
        self, path: Path | None, options: dict[str, Any], seed: int
    ) -> Iterator[Ticket | Rejected]:
        """Yield each ticket, or why it could not be read. Raises BadInput for what is no such file."""
        ...


FORMATS: Registry[TicketFormat] = Registry("ticket format", "transect.text.formats")
