"""The lines of MLPerf's training logs, all versions, as events.

0.5 (mlperf_compliance): `:::MLPv0.5.0 BENCHMARK SECONDS (FILE:LINE) KEY[: JSON]`, and
`:::MLPv0.5.0 [UUID][SECONDS][VALUE]` for a value that was deferred. 0.6: the same with its number, or
`:::MLL SECONDS KEY: {"value": ..., "metadata": {...}}`. 0.7 and later (mlperf_logging):
`:::MLLOG {"time_ms": ..., "key": ..., "value": ..., "metadata": {...}}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from transect.hpc.parsers._learning import ERRORS, LOGGED, Digits, first_objects
from transect.hpc.text import Line

_LABEL = r"(?:[\w.\-]{1,64}+:[ \t]|[A-Z]{1,20}_RAW_)?"
_TAG = r":::ML(?:LOG \{|L \d{1,15}\.\d|Pv\d{1,3}\.\d)"
STARTS = (rf"{LOGGED}{_LABEL}{_TAG}",)
# Inside a run, other output may stand before the tag on the same line.
WANTS = (rf"[^\n:]{{0,300}}+(?::(?!::ML)[^\n:]{{0,300}}+){{0,30}}+{_TAG}", r"RESULT,[\w \-]{0,60},", *ERRORS)
MARK = ":::ML"

_OLD = re.compile(
    r":::ML(?:Pv(?P<version>\d{1,3}(?:\.\d{1,4}){1,3})|L)[ \t]+"
    r"(?:\[(?P<uuid>[0-9a-fA-F\-]{8,40})\]\[(?P<then>[\d.]{1,40})\]\[(?P<late>[^\]\n]{0,400})\]"
    r"|(?:(?P<benchmark>[\w\-.]{1,60})[ \t]+)?(?P<time>\d[\d.eE+]{0,39})[ \t]+"
    r"(?:\([^)\n]{0,300}\)[ \t]+)?(?P<key>[A-Za-z_][\w.\-]{0,99})(?::[ \t]*(?P<value>.*))?$)"
)
_BROKEN_KEY = re.compile(r'"key":[ ]?"([A-Za-z_][\w.\-]{0,99})"')
_BROKEN_TIME = re.compile(r'"time_ms":[ ]?"?(\d{1,20})')
# Lines of 0.6 name no version, and no other version has such lines.
_UNNUMBERED = "0.6"


@dataclass(slots=True)
class Event:
    """One logged event. `time` is in seconds; None when it is absent or zero."""

    line: int
    key: str
    value: Any = None
    time: Decimal | None = None
    zero_time: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    benchmark: str = ""
    version: str = ""
    broken: bool = False
    settles: str = ""  # the UUID of an earlier, deferred value


def seconds(printed: object, factor: int = 0) -> Decimal | None:
    """Read a time, `factor` decimal places to the right; None when it is no finite number."""
    try:
        value = Decimal(str(printed)[:40]).scaleb(-factor)
    except (InvalidOperation, ArithmeticError):
        return None
    # Far outside any clock: arithmetic with such exponents would take for ever.
    return value if value.is_finite() and -30 < value.adjusted() < 15 else None


def events(line: Line) -> Iterator[Event]:
    """Yield the events of a line; a broken one keeps its key when that can still be read."""
    place = line.text.find(MARK)
    while place >= 0:
        following = line.text.find(MARK, place + len(MARK))
        part = line.text[place : following if following > 0 else None]
        event = _new(line.number, part) if part.startswith(":::MLLOG") else _old(line.number, part)
        if event is not None:
            yield event
        place = following


def _new(number: int, part: str) -> Event | None:
    objects = first_objects(part, part.find("{")) if "{" in part else []
    if not objects:
        key, time = _BROKEN_KEY.search(part), _BROKEN_TIME.search(part)
        if key is None:
            return Event(line=number, key="", broken=True)
        return Event(line=number, key=key[1], time=seconds(time[1], 3) or None if time else None, broken=True)
    record = objects[0]
    time_s = seconds(record.get("time_ms"), 3)
    metadata = record.get("metadata")
    key_text = record.get("key")
    return Event(
        line=number,
        key=key_text[:100] if isinstance(key_text, str) else "",
        value=record.get("value"),
        time=time_s or None,
        zero_time=time_s == 0,
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def _old(number: int, part: str) -> Event | None:
    match = _OLD.match(part.rstrip())
    if match is None:
        return Event(line=number, key="", broken=True)
    if match["uuid"] is not None:
        late = match["late"].strip()
        return Event(
            line=number,
            key="deferred",
            value=Digits(late),
            settles=match["uuid"],
            time=seconds(match["then"]) or None,
            version=match["version"] or _UNNUMBERED,
        )
    time_s = seconds(match["time"])
    event = Event(
        line=number,
        key=match["key"],
        time=time_s or None,
        zero_time=time_s == 0,
        benchmark=match["benchmark"] or "",
        version=match["version"] or _UNNUMBERED,
    )
    text = (match["value"] or "").strip()
    if text.startswith("{"):
        objects = first_objects(text, 0)
        if not objects:
            event.broken = True
        else:
            inner = objects[0].get("metadata")
            event.metadata = inner if isinstance(inner, dict) else objects[0]
            event.value = objects[0].get("value")
    elif text.startswith(('"', "'")):
        event.value = text.strip("\"'")
        if event.value.startswith("DEFERRED: "):
            event.settles = event.value.removeprefix("DEFERRED: ").strip()
    elif text and text != "null":
        event.value = _scalar(text)
    return event


def _scalar(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("["):
        inside = [part.strip().strip("\"'") for part in text.strip("[]").split(",")[:64]]
        return Digits(inside[0]) if len(inside) == 1 else inside
    return Digits(text[:100])
