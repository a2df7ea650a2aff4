"""Format `jsonl`: a ticket a line, as JSON. It is described in docs/tickets.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from transect.text.formats import FORMATS, TicketFormat
from transect.text.formats._options import FileOptions, TimeFormat, cleaned, moment
from transect.text.reading import Lines, TooLong, is_broken, need_file
from transect.text.tickets import Message, Rejected, Ticket, rejected

# `\u0041` is the longest that a character can be written.
_ESCAPE = 6
_ROLES = ("customer", "agent", "")


class JsonOptions(FileOptions):
    """Of JSON Lines."""

    time_format: TimeFormat | None = Field(
        default=None, description="of times, as `strptime` has it; null: ISO 8601, or seconds since 1970"
    )


class _Wrong(ValueError):
    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause, self.detail = cause, detail


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
    try:
        return cleaned(_of(value, place, options), options, place)
    except _Wrong as wrong:
        return rejected(place, wrong.cause, wrong.detail)


def _of(value: Any, place: str, options: JsonOptions) -> Ticket:
    if not isinstance(value, dict):
        raise _Wrong("wrong-type", "expected an object")
    if "messages" in value:
        messages = value["messages"]
        if not isinstance(messages, list):
            raise _Wrong("wrong-type", "messages: expected a list")
    elif "text" in value:
        keys = ("text", "author", "role", "time")
        messages = [{key: value[key] for key in keys if key in value}]
    else:
        raise _Wrong("missing-column", "expected `messages` or `text`")
    others = value.get("people") or []
    if not isinstance(others, list) or not all(isinstance(one, str) for one in others):
        raise _Wrong("wrong-type", "people: expected a list of strings")
    return Ticket(
        id=_text(value, "id", "") or place,
        messages=[_message(message, f"messages.{number}", options) for number, message in enumerate(messages)],
        owner=_text(value, "owner", ""),
        queue=_text(value, "queue", ""),
        language=_text(value, "language", ""),
        others=others,
    )


def _message(value: Any, where: str, options: JsonOptions) -> Message:
    if isinstance(value, str):
        return Message(text=value)
    if not isinstance(value, dict):
        raise _Wrong("wrong-type", f"{where}: expected an object or a string")
    if "text" not in value:
        raise _Wrong("missing-column", f"{where}.text")
    role = _text(value, "role", where).strip().lower()
    if role not in _ROLES:
        raise _Wrong("wrong-type", f"{where}.role: expected customer or agent")
    try:
        time = moment(value.get("time"), options.time_format)
    except ValueError:
        raise _Wrong("broken-time", f"{where}.time") from None
    return Message(text=_text(value, "text", where), author=_text(value, "author", where), role=role, time=time)


def _text(value: dict[str, Any], key: str, where: str) -> str:
    found = value.get(key)
    if found is None:
        return ""
    if isinstance(found, str):
        return found
    if key == "id" and isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    raise _Wrong("wrong-type", f"{where}.{key}: expected a string".lstrip("."))
