"""What the parsers of machine-learning logs share: log prefixes, errors, series, JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from transect.domain.metrics import Direction
from transect.hpc.base import LogMetric, Parameter, Series
from transect.hpc.rules import Output, rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import LIMITS, impossible, log_metric, number

# What logging libraries put before a message: absl and glog, Python's basicConfig, its usual
# formats behind a time stamp, DeepSpeed, Hugging Face, MXNet, Ray. Possessive: no way back.
LOGGED = (
    r"(?:[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9}[ \t]{1,9}\d{1,20} [\w.\-/<>]{1,80}:\d{1,6}\][ \t]{0,9}"
    r"|(?:INFO|WARNING|DEBUG|ERROR):[\w.\-]{0,60}:[ \t]?"
    r"|INFO[ \t]{1,9}(?=[\[*{'|IE])"
    r"|-[ \t](?:INFO|WARNING)[ \t]-[ \t](?:[\w.]{1,60}[ \t]-[ \t]{1,9})?"
    r"|\d\d/\d\d/\d{4} \d\d:\d\d:\d\d[ \t]-[ \t](?:INFO|WARNING)[ \t]-[ \t]"
    r"(?:[\w.]{1,60}[ \t]-[ \t]{1,9})?"
    r"|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,9})?Z?[ \t]{1,9}"
    r"|\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,9})?\][ \t]{0,9}"
    r"|\[(?:INFO|WARNING)(?:\|[^\]\n]{1,80})?\][ \t](?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[ \t])?"
    r"(?:>>[ \t]{0,9})?"
    r"|\[[\w\-]{1,60}\.py:\d{1,6}:\w{1,60}\][ \t]"
    r"|Node\[\d{1,6}\][ \t]"
    # pdsh and DeepSpeed's launcher: the host.
    r"|[A-Za-z][\w.\-]{0,62}:[ \t]{1,4}(?=iteration |\[\d{4}-\d\d-\d\d)"
    r"|\(\w{1,60} pid=\d{1,9}(?:, ip=[\d.]{7,15})?\)[ \t]{0,9}"
    r"){0,4}+"
)
_LOGGED = re.compile(LOGGED)

# Lines with which Python and the frameworks say why they stop. They stand in passing runs too
# (a caught exception): like `block.TROUBLE`, they only explain a run that is incomplete.
ERRORS = (
    r"(?:\[rank\d{1,6}\]:[ \t]*)?[\w.]{0,80}(?:Error|Exception|KeyboardInterrupt)"
    r"(?::[ \t]|[ \t]\(see above|[ \t]*(?=[\r\n]|\Z))",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9}: [WEF] [^\n]{0,200}?(?:OOM when|out of memory)",
    r"CUDA out of memory",
    r"\[E:onnxruntime",
    r"DUE TO TIME LIMIT",
)
_ERRORS = re.compile("|".join(ERRORS))

_MAX_SAMPLES = 10_000
_MAX_PARAMETERS = 150
_WHOLE = re.compile(r"[-+]?\d{1,18}")


class Digits(str):
    """A number of a JSON text as it was printed."""

    __slots__ = ()


_JSON = json.JSONDecoder(parse_float=Digits, parse_int=Digits, parse_constant=Digits)


def without_prefix(text: str) -> str:
    """Return a line without blanks and without what a logging library put before the message."""
    text = text.strip()
    match = _LOGGED.match(text)
    return text[match.end() :].lstrip() if match else text


def is_error(text: str) -> bool:
    """Tell whether a line names the error that stopped a program."""
    return _ERRORS.match(text) is not None


def first_objects(text: str, place: int) -> list[dict[str, Any]]:
    """Read the JSON object at `place`; empty when it is broken. Numbers are `Digits`."""
    try:
        value, _ = _JSON.raw_decode(text, place)
    except (ValueError, RecursionError):
        return []
    return [value] if isinstance(value, dict) else []


def implausible(metric: LogMetric) -> str | None:
    """Like `impossible`; times and rates without a limit in the registry are not negative."""
    if metric.value < 0 and metric.normalised is not None and metric.normalised.name not in LIMITS:
        return f"{metric.name} = {metric.printed} {metric.unit} is negative"
    return impossible(metric)


def literal(value: object) -> Parameter | None:
    """Turn a JSON value into a parameter; None for null, nested and non-finite values."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Digits):
        if _WHOLE.fullmatch(value):
            return int(value)
        return number(value)
    if isinstance(value, str):
        return excerpt(value)
    if isinstance(value, list) and value and len(value) <= 64:
        texts = [excerpt(str(element), 80) for element in value if isinstance(element, str)]
        if len(texts) != len(value):
            return None
        whole = all(isinstance(element, Digits) and _WHOLE.fullmatch(element) for element in value)
        return [int(text) for text in texts] if whole else texts
    return None


def add_parameter(into: dict[str, Parameter], key: str, value: Parameter | None) -> None:
    """Add a parameter unless it is there already or there are too many."""
    if value is not None and key and len(into) < _MAX_PARAMETERS:
        into.setdefault(excerpt(key, 80), value)


@dataclass(slots=True)
class Samples:
    """The values of one series as printed; the first ones are kept, the last one always."""

    unit: str
    direction: Direction
    registered: str | None = None
    kept: list[tuple[float, str]] = field(default_factory=list)
    count: int = 0
    last: str = ""
    broken: str = ""  # the first value that is no finite number
    last_broken: bool = False
    limit: int = _MAX_SAMPLES

    def add(self, printed: str) -> None:
        value = number(printed)
        self.last_broken = value is None
        if value is None:
            self.broken = self.broken or printed[:40]
            return
        self.count += 1
        self.last = printed
        if len(self.kept) < self.limit:
            self.kept.append((value, printed))

    def series(self) -> Series:
        return Series(unit=self.unit, values=[value for value, _ in self.kept])

    def middle(self) -> str:
        """Return the digits of the lower median: a value that the log really prints."""
        return sorted(self.kept)[(len(self.kept) - 1) // 2][1] if self.kept else ""

    def metrics(self, name: str, normalise: bool = True) -> list[LogMetric]:
        """Return the median, and the last value when there are several."""
        registered = self.registered if normalise else None
        readings = [log_metric(name, self.middle(), self.unit, self.direction, registered=registered, phase="median")]
        if self.count > 1:
            readings.append(log_metric(name, self.last, self.unit, self.direction, phase="last"))
        return [reading for reading in readings if reading is not None]

    def warnings(self, name: str) -> list[str]:
        if self.count > len(self.kept):
            return [f"{name}: the first {len(self.kept)} of {self.count} values are kept"]
        return []

    def mean(self, start: int = 0) -> float:
        """Return the mean of the kept values from `start` on; there must be one."""
        values = [value for value, _ in self.kept[start:]]
        return sum(value / len(values) for value in values)  # the sum itself may be infinite


class LoggedOutput(Output):
    """The output of a program that prints through a logger: prefixes are removed; a cut line may lack digits."""

    @staticmethod
    def text_of(line: Line) -> str:
        return without_prefix(line.text)

    def read(self, line: Line, text: str) -> None:
        if not line.cut:
            super().read(line, text)

    @rule(r".+", wanted="")
    def error(self, match: re.Match[str], line: Line) -> None:
        if is_error(match[0]):
            self.stop(excerpt(match[0]), most=3)
