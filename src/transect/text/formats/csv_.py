"""Format `csv`: a message a row; the rows of a ticket follow one another. See docs/tickets.md."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, field_validator

from transect.domain.errors import BadInput
from transect.text.formats import FORMATS, TicketFormat
from transect.text.formats._options import ROLES, TableOptions, TimeFormat, cleaned, moment
from transect.text.reading import Lines, TooLong, is_broken, need_file
from transect.text.tickets import Message, Rejected, Ticket, rejected

_DELIMITERS = ",;\t|"
_COLUMNS = ("id", "text", "author", "role", "time", "owner", "queue", "language")


class CsvOptions(TableOptions):
    """Of CSV with one message a row."""

    columns: dict[str, str] = Field(
        default={}, description=f"names of columns that are called otherwise: {', '.join(_COLUMNS)}"
    )
    time_format: TimeFormat | None = Field(default=None, description="of times, as `strptime` has it; null: ISO 8601")

    @field_validator("columns")
    @classmethod
    def _of_tickets(cls, given: dict[str, str]) -> dict[str, str]:
        for key in given:
            if key not in _COLUMNS:
                raise ValueError(f"'{key}' is none of {', '.join(_COLUMNS)}")
        return given


@dataclass(slots=True)
class Row:
    """A row of the file: its place, and the cells by what they are."""

    place: str
    cells: dict[str, str]


@FORMATS.register("csv")
class Csv(TicketFormat[CsvOptions]):
    """A message a row, with columns `id` and `text`, and as far as known `author`, `role`, `time`,
    `owner`, `queue`, `language`.
    """

    options = CsvOptions

    def read(self, path: Path | None, given: CsvOptions, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield the ticket of each run of rows with one id."""
        columns = {name: given.columns.get(name, name) for name in _COLUMNS}
        needed = {"id", "text", *given.columns}
        ticket: Ticket | None = None
        place, size = "", 0
        for row in rows(need_file(path), given, columns, needed):
            if isinstance(row, Rejected):
                yield row
                continue
            message = _message(row, given)
            if isinstance(message, Rejected):
                yield message
                continue
            identifier = row.cells["id"]
            if ticket is None or identifier != ticket.id or not identifier:
                if ticket is not None:
                    yield cleaned(ticket, given, place)
                ticket, place, size = Ticket(identifier or row.place, []), row.place, 0
            size += len(message.text)
            if size <= given.largest:
                ticket.messages.append(message)
            else:
                # Never more than that in memory; it is rejected for its size.
                ticket.messages = [Message(text=" " * (given.largest + 1))]
            ticket.owner = row.cells.get("owner") or ticket.owner
            ticket.queue = row.cells.get("queue") or ticket.queue
            ticket.language = row.cells.get("language") or ticket.language
        if ticket is not None:
            yield cleaned(ticket, given, place)


def _message(row: Row, options: CsvOptions) -> Message | Rejected:
    cells = row.cells
    role = cells.get("role", "").strip().lower()
    if role not in ROLES:
        return rejected(row.place, "wrong-type", "role: expected customer or agent")
    try:
        time = moment(cells.get("time"), options.time_format)
    except ValueError:
        return rejected(row.place, "broken-time", "time")
    return Message(text=cells["text"], author=cells.get("author", ""), role=role, time=time)


def rows(path: Path, options: TableOptions, columns: dict[str, str], needed: set[str]) -> Iterator[Row | Rejected]:
    """Yield each row's cells by the keys of `columns`, whose values are names in the header.

    Columns that the header lacks are left out. Raises BadInput where it lacks one of `needed`.
    """
    lines = Lines(path, options.encoding, 2 * options.largest + 65_536)
    try:
        # A cell may be as long as a ticket; its quotes are doubled.
        csv.field_size_limit(2 * options.largest + 65_536)
        header, delimiter = _header(path, lines, options.delimiter, columns, needed)
        places = {name: header.index(title) for name, title in columns.items() if title in header}
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            first, lines.wide = lines.number + 1, False
            try:
                cells = next(reader)
            except StopIteration:
                return
            except TooLong:
                yield rejected(f"line {lines.number}", "too-large", "the line")
                continue
            except csv.Error as error:
                large = "field larger" in str(error)
                yield rejected(_place(first, lines.number), "too-large" if large else "broken-row")
                continue
            if not cells:
                continue
            place = _place(first, lines.number)
            if len(cells) != len(header):
                cause = "missing-column" if len(cells) < len(header) else "extra-column"
                detail = f"{len(cells)} columns, the header has {len(header)}"
                yield rejected(place, cause, detail)
            elif lines.wide and is_broken("\n".join(cells), lines.encoding):
                yield rejected(place, "broken-encoding", f"not {lines.encoding}")
            else:
                yield Row(place, {name: cells[at] for name, at in places.items()})
    finally:
        lines.close()


def _place(first: int, last: int) -> str:
    return f"line {first}" if first >= last else f"lines {first} to {last}"


def _header(
    path: Path, lines: Lines, delimiter: str | None, columns: dict[str, str], needed: set[str]
) -> tuple[list[str], str]:
    """Return the names of the columns and what stands between them."""
    try:
        line = next(lines, "")
    except TooLong:
        raise BadInput(f"{path}: the first line is too long for a header") from None
    found = {
        mark: [cell.strip() for cell in next(csv.reader([line], delimiter=mark), [])]
        for mark in delimiter or _DELIMITERS
    }
    titles = set(columns.values())
    best = max(found, key=lambda mark: len(titles.intersection(found[mark])))
    header = found[best]
    wanted = [columns[name] for name in columns if name in needed]
    lacking = [title for title in wanted if title not in header]
    if lacking:
        # Not what stands there instead: without a header that is a ticket.
        raise BadInput(
            f"{path}: the first line has {len(header)} columns and no '{lacking[0]}': expected a header "
            f"with {', '.join(wanted)}; other names are given by options"
        )
    repeated = [title for title in columns.values() if header.count(title) > 1]
    if repeated:
        raise BadInput(f"{path}: the header has column '{repeated[0]}' more than once")
    return header, best
