"""Format `sample`: the real tickets that come with the package."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from transect.text.formats import FORMATS, TicketFormat
from transect.text.options import Options
from transect.text.tickets import Message, Rejected, Ticket

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "tickets-sample.csv"


@FORMATS.register("sample")
class Sample(TicketFormat[Options]):
    """479 IT-service tickets in 8 groups, one of a hundred of a public data set, CC0; see `text/data`.

    Each is one message, without owner and time.
    """

    reads = False
    options = Options

    def code_files(self) -> list[Path]:
        """The tickets: cells that read them run again when they change."""
        return [SAMPLE]

    def read(self, path: Path | None, given: Options, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield each ticket, in the order of the file; its id is the row in the whole data set."""
        with SAMPLE.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                yield Ticket(
                    id=f"sample-{row['Row']}",
                    messages=[Message(text=row["Document"], role="customer")],
                    queue=row["Topic_group"],
                )
