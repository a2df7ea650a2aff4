"""Format `jsonl`: a ticket a line, as JSON. It is described in docs/tickets.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from transect.text.formats import FORMATS, TicketFormat
from transect.text.formats._options import ROLES, FileOptions, TimeFormat, cleaned, moment
from transect.text.reading import Lines, TooLong, is_broken, need_file
from transect.text.tickets import Message, Rejected, Ticket, rejected

# `\u0041` is the longest that a character can be written.
_ESCAPE = 6


class JsonOptions(FileOptions):
    """Of JSON Lines."""

    time_format: TimeFormat | None = Field(
        default=None, description="of times, as `strptime` has it; null: ISO 8601, or seconds since 1970"
    )


def _plain(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


class _Message(BaseModel):
    model_config = ConfigDict(strict=True)

    text: str | None
    author: str | None = None
    role: str | None = None
    time: Any = None

    @field_validator("role")
    @classmethod
    def _is_known(cls, given: str | None) -> str:
        role = (given or "").strip().lower()
        if role not in ROLES:
            raise ValueError("expected customer or agent")
        return role

    @field_validator("time")
    @classmethod
    def _is_time(cls, given: Any, info: ValidationInfo) -> str:
        return moment(given, info.context)


class _Ticket(BaseModel):
    model_config = ConfigDict(strict=True)

    messages: list[Annotated[_Message, BeforeValidator(_plain)]]
    id: str | int | None = None
    owner: str | None = None
    queue: str | None = None
    language: str | None = None
    people: list[str] | None = None


@FORMATS.register("jsonl")
class JsonLines(TicketFormat[JsonOptions]):
    """A ticket a line: `{"id", "messages": [{"text", "author", "role", "time"}], "owner", "queue"}`."""

    options = JsonOptions

    def read(self, path: Path | None, given: JsonOptions, seed: int) -> Iterator[Ticket | Rejected]:
        """Yield each line's ticket; empty lines are none."""
        lines = Lines(need_file(path), given.encoding, _ESCAPE * given.largest + 65_536)
        try:
            while True:
                try:
                    line = next(lines)
                except StopIteration:
                    return
                except TooLong:
                    yield rejected(f"line {lines.number}", "too-large", "the line")
                    continue
                if line and not line.isspace():
                    yield _ticket(line, lines.encoding, f"line {lines.number}", given)
        finally:
            lines.close()


def _ticket(line: str, encoding: str, place: str, options: JsonOptions) -> Ticket | Rejected:
    if is_broken(line, encoding):
        return rejected(place, "broken-encoding", f"not {encoding}")
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        # The message of the error says what was expected, and nothing of the line.
        return rejected(place, "broken-json", f"{error.msg}: column {error.colno}")
    except (RecursionError, ValueError):
        return rejected(place, "broken-json", "nested too deeply, or a number too long")
    if isinstance(value, dict) and "messages" not in value and "text" in value:
        value["messages"] = [value]
    try:
        read = _Ticket.model_validate(value, context=options.time_format)
    except ValidationError as wrong:
        # Neither what stands there nor a message that quotes it.
        first = wrong.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("str", "int"))
        kinds = {"missing": "missing-column", "value_error": "broken-time" if where.endswith("time") else "wrong-type"}
        return rejected(place, kinds.get(first["type"], "wrong-type"), where)
    ticket = Ticket(
        id=place if read.id in (None, "") else str(read.id),
        messages=[
            Message(text=part.text or "", author=part.author or "", role=part.role or "", time=part.time or "")
            for part in read.messages
        ],
        owner=read.owner or "",
        queue=read.queue or "",
        language=read.language or "",
        others=read.people or [],
    )
    return cleaned(ticket, options, place)
