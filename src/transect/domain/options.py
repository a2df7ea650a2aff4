"""Options of a cell: pairs of name and value that only the plug-in that it runs understands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from transect.domain.cell import Axis
from transect.domain.errors import BadInput, unknown_name

Value = int | float | str
# Pairs of name and value, sorted by name.
Options = tuple[tuple[str, Value], ...]


def option_words(options: Options) -> str:
    """Return how ids call them.

    >>> option_words((("micro_batches", 4), ("schedule", "1f1b")))
    'micro_batches4.schedule1f1b'
    """
    return ".".join(f"{name}{value}" for name, value in options)


def _label(options: Options) -> str:
    return ", ".join(f"{name} {value}" for name, value in options)


OptionsAxis = Annotated[Options, Axis(place=170, word=option_words, label=_label)]
# Of a second plug-in of the same cell.
MoreOptionsAxis = Annotated[Options, Axis(place=171, word=option_words, label=_label)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option that a plug-in has. Its default's type is its own: whole number, number or text.

    `choices`: the only values. `pattern`: what a text must match, such as `example`, if it is none of
    them. `min`: the smallest number. `null`: the value that a null in a study stands for.
    """

    default: Value
    description: str
    choices: tuple[Value, ...] = ()
    pattern: str = ""
    example: str = ""
    min: float | None = None
    null: Value | None = None

    @property
    def expected(self) -> str:
        """Say what it takes."""
        return self._values + ("" if self.null is None else f", or null ({self.null})")

    @property
    def _values(self) -> str:
        text = "a text in quotes" + (f" such as '{self.example}'" if self.pattern else "")
        if self.choices:
            named = f"one of {', '.join(map(str, self.choices))}"
            return f"{named}, or {text}" if self.pattern else named
        if isinstance(self.default, str):
            return text
        least = "" if self.min is None else f" from {self.min:g} on"
        return f"{'a whole number' if isinstance(self.default, int) else 'a number'}{least}"

    def takes(self, given: Value) -> bool:
        """Whether it is a value of the option; True is no number."""
        if self.pattern and isinstance(given, str) and re.fullmatch(self.pattern, given):
            return True
        if self.choices:
            return type(given) in {type(choice) for choice in self.choices} and given in self.choices
        if isinstance(self.default, str):
            return isinstance(given, str) and bool(given) and not self.pattern
        kinds = (int,) if isinstance(self.default, int) else (int, float)
        return type(given) in kinds and (self.min is None or float(given) >= self.min)


def chosen_options(owner: str, known: Mapping[str, Option], given: Mapping[str, Value | None], where: str) -> Options:
    """Return the given options as an axis holds them: checked, without those at their defaults.

    `owner` is e.g. `strategy ddp`. Raises BadInput naming `where`, the option and what was expected.
    """
    chosen: dict[str, Value] = {}
    for name, found in given.items():
        if name not in known:
            raise unknown_name(f"option of {owner}", name, known, where)
        value = known[name].null if found is None else found
        if value is None or not known[name].takes(value):
            raise BadInput(f"{where}.{name}: {owner} takes {known[name].expected}, got {found!r}")
        chosen[name] = value
    return tuple(sorted((name, v) for name, v in chosen.items() if v != known[name].default))


def settings(known: Mapping[str, Option], options: Options) -> dict[str, Value]:
    """Return every option with its value: the cell's, or the default."""
    return {name: option.default for name, option in known.items()} | dict(options)
