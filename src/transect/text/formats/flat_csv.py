"""Format `flat-csv`: a ticket a row, of two columns: its text, and its queue or owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from transect.text.formats import FORMATS, TicketFormat
from transect.text.formats._options import TableOptions, cleaned
from transect.text.formats.csv_ import rows
from transect.text.reading import need_file
from transect.text.tickets import Message, Rejected, Ticket

_QUEUE = "Topic_group"


class FlatOptions(TableOptions):
    """Of CSV with one ticket a row."""

    text: str = Field(default="Document", description="the column with the text")
    queue: str | None = Field(
        default=None, description=f"the column with the queue; null: {_QUEUE}, where there is one"
    )
    owner: str | None = Field(default=None, description="the column with the owner")


@FORMATS.register("flat-csv")
class FlatCsv(TicketFormat[FlatOptions]):
    """A ticket a row, as in the public data set of 47,837 IT-service tickets: `Document, Topic_group`."""

    options = FlatOptions

    def read(self, path: Path | None, given: FlatOptions, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield each row's ticket; its id is its number among the rows."""
        columns = {"text": given.text, "queue": given.queue or _QUEUE}
        needed = {"text"}
        if given.queue:
            needed.add("queue")
        if given.owner:
            columns["owner"] = given.owner
            needed.add("owner")
        for number, row in enumerate(rows(need_file(path), given, columns, needed), start=1):
            if isinstance(row, Rejected):
                yield row
                continue
            cells = row.cells
            ticket = Ticket(
                id=f"row {number}",
                messages=[Message(text=cells["text"], role="customer")],
                owner=cells.get("owner", ""),
                queue=cells.get("queue", ""),
            )
            yield cleaned(ticket, given, row.place)
