"""Rules of a log: each pattern stands once, beside what is done with its lines.

A parser's `output` is a class with a method for each kind of line, under `@rule(pattern)`. What is searched for in
megabytes (`Parser.line_patterns`), and which method gets a line, is made of these patterns.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar, Self, TypeVar

from transect.hpc.base import Parameter, Parser, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.text import Line, excerpt

Method = TypeVar("Method", bound=Callable[..., object])

_RULES = "_rules_of_lines"
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P<\w+>|\(\?|.", re.DOTALL)
# What may be half of a number where the file ends.
_HALF = re.compile(r"[\d.][\d.eE+\-]*$")
# What is none: a number with as many decimals as the one before it, as of a table, and the year of a date.
_WHOLE = re.compile(r"\d\.(\d{3,})[^\d.]+?-?\d+\.(\d+)$")
_DATE = re.compile(r"\d\d:\d\d:\d\d \d{4}$")
# As a rule of one line says it -> as it is searched for among many lines.
_WITHIN_LINE = {"\\s": "[ \\t]", ".": "[^\\n]", "$": "[ \\t]*(?=[\\r\\n]|\\Z)", "(": "(?:"}


def searched(*rules: re.Pattern[str]) -> tuple[str, ...]:
    """Return what `Parser.line_patterns` takes, from the patterns with which the parser reads these lines.

    Without capturing groups, within one line, flags inside: a rule stands once, and the search cannot drift
    from it.
    """
    return tuple(_searched(rule) for rule in rules)


def _searched(rule: re.Pattern[str]) -> str:
    text = _TOKEN.sub(_within_line, rule.pattern)
    return f"(?i:{text})" if rule.flags & re.IGNORECASE else text


def _within_line(token: re.Match[str]) -> str:
    text = token[0]
    if text.startswith("(?P"):
        return "(?:"
    if text.startswith("["):
        text = text.replace("\\s", " \\t")
        return f"[^\\n{text[2:]}" if text.startswith("[^") else text
    return _WITHIN_LINE.get(text, text)


def _may_be_half(text: str) -> bool:
    if _HALF.search(text) is None or _DATE.search(text):
        return False
    alike = _WHOLE.search(text)
    return alike is None or len(alike[1]) != len(alike[2])


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of a line, as it is searched for, and the method that takes it."""

    pattern: re.Pattern[str]
    wanted: tuple[str, ...]
    method: Callable[..., object]


def rule(
    pattern: str | re.Pattern[str], flags: int = 0, *, behind: str = "", wanted: str | None = None
) -> Callable[[Method], Method]:
    """Give the lines that begin with `pattern` to a method of an `Output`: `method(match, line)`.

    Rules are tried in the order in which they stand in the class; a method that returns False leaves the line to the
    next ones. `behind` is what stands before the text that is read, `wanted` what is searched for instead ("": nothing,
    another rule or `start_patterns` finds these lines).
    """
    compiled = re.compile(pattern, flags)
    if wanted is None:
        (found,) = searched(compiled)
        wanted = f"{behind}(?:{found})" if behind else found

    def mark(method: Method) -> Method:
        new_rule = Rule(compiled, (wanted,) if wanted else (), method)
        setattr(method, _RULES, (new_rule, *getattr(method, _RULES, ())))
        return method

    return mark


def notes(pattern: str | re.Pattern[str], key: str, kind: type | None = None, group: int = 1, **how: Any) -> Any:
    """Return a method that keeps a group of its lines as `facts[key]`: an `int`, a `str`, else an excerpt."""
    made: Callable[[str], Parameter] = int if kind is int else str.strip if kind is str else excerpt

    def take(self: Output, match: re.Match[str], line: Line) -> None:
        self.facts[key] = made(match[group])

    return rule(pattern, **how)(take)


def sets(pattern: str | re.Pattern[str], attribute: str, value: object = None, **how: Any) -> Any:
    """Return a method that sets an attribute (`test.step`: of one) to `value`, or to the group of its lines that is there."""
    *path, name = attribute.split(".")

    def take(self: Output, match: re.Match[str], line: Line) -> None:
        setattr(reduce(getattr, path, self), name, next(filter(None, match.groups())) if value is None else value)

    return rule(pattern, **how)(take)


def keeps(pattern: str | re.Pattern[str], attribute: str, **how: Any) -> Any:
    """Return a method that adds its first few lines to a list: `stops`, `warnings` or another."""

    def take(self: Output, match: re.Match[str], line: Line) -> None:
        if len(kept := getattr(self, attribute)) < 5:
            kept.append(excerpt(match.string))

    return rule(pattern, **how)(take)


@dataclass(kw_only=True)
class Output(ABC):
    """What one start of a program has printed so far; a subclass says what its lines mean and what runs they make."""

    block: Block
    line: int
    rank: int | None = None
    variant: str = ""
    version: str = ""
    facts: dict[str, Parameter] = field(default_factory=dict)
    stops: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    ended: bool = False
    alone: bool = False  # at the end no other rank's output is open
    ready: list[Run] = field(default_factory=list)  # runs that are whole while lines go on
    halved: bool = False  # whether its last line is left out, as it may be half of one

    rules: ClassVar[tuple[Rule, ...]] = ()
    # Whether it tells by the width of its columns that the last row of a file is whole.
    knows_width: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Gather the rules in their order, those of the class above last."""
        members = vars(cls).values()
        # A dataclass with slots is made of its class once more, with the same methods.
        cls.rules = tuple(
            dict.fromkeys(rule for member in members for rule in getattr(member, _RULES, ())) | dict.fromkeys(cls.rules)
        )

    @classmethod
    def wanted(cls) -> tuple[str, ...]:
        """Return what is searched for so that every rule sees its lines."""
        return tuple(dict.fromkeys(pattern for rule in cls.rules for pattern in rule.wanted))

    @staticmethod
    def text_of(line: Line) -> str:
        """Return what of a line the rules are tried on."""
        return line.text.strip()

    def begins(self, text: str) -> bool:
        """Tell whether a line belongs to the next output of its kind."""
        return False

    def is_behind(self, text: str) -> bool:
        """Tell whether a line is of no output of this benchmark: it is searched for another one's."""
        return False

    def following(self, line: Line, text: str) -> Self:
        """Return the output that begins at this line."""
        return type(self)(block=self.block, line=line.number, rank=line.rank)

    def read(self, line: Line, text: str) -> None:
        """Take in one line, unless it ends with the file and in what may be half of a number."""
        if line.cut and not self.knows_width and _may_be_half(text):
            self.halved = True
            return
        for rule in self.rules:
            match = rule.pattern.match(text)
            if match is not None and rule.method(self, match, line) is not False:
                return

    def stop(self, text: str, most: int = 5) -> None:
        """Keep one of the first lines that say what stopped the program."""
        if len(self.stops) < most:
            self.stops.append(text)

    def drain(self) -> Iterator[Run]:
        """Yield what is ready, once."""
        yield from self.ready
        self.ready.clear()

    @abstractmethod
    def runs(self) -> Iterator[Run]:
        """Yield the runs of the whole output, once no line of it is to come."""

    def draft(self, line: int | None = None, **known: Any) -> Draft:
        """Return a run with what the output says of itself."""
        facts = {
            "variant": self.variant,
            "version": self.version,
            "parameters": dict(self.facts),
            "warnings": self.warnings[:20],
            "stops": list(self.stops),
        }
        return Draft(block=self.block, line=self.line if line is None else line, **(facts | known))


class OutputParser(Parser):
    """Reads a log as a row of outputs: each ends where the next one begins."""

    output: ClassVar[type[Output]]
    # Lines that are wanted beside those of the rules.
    also: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Search for what the rules read, unless the class says otherwise."""
        super().__init_subclass__()
        if "output" in vars(cls) and "line_patterns" not in vars(cls):
            cls.line_patterns = tuple(dict.fromkeys((*cls.output.wanted(), *cls.also)))

    def first(self, block: Block) -> Output:
        """Return the output that the block begins with."""
        return self.output(block=block, line=block.first.number, rank=block.first.rank)

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield the runs of each output. What follows one that has ended is searched for other benchmarks."""
        output = self.first(block)
        for line in block:
            text = output.text_of(line)
            if output.is_behind(text):
                yield from output.runs()
                block.pushed_back = line
                return
            if output.begins(text):
                yield from output.runs()
                output = output.following(line, text)
            output.read(line, text)
            yield from output.drain()
            if output.ended:
                yield from output.runs()
                return
        yield from output.runs()


class RankParser(OutputParser):
    """Reads an output for each rank, by the labels in front of the lines."""

    # Of more ranks at once the first is closed.
    most_open: ClassVar[int] = 512
    # Whether what follows the last open output may belong to any benchmark.
    ends_with_outputs: ClassVar[bool] = False

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield the runs of all outputs, each when it is over."""
        outputs: dict[int | None, Output] = {}
        for line in block:
            text, rank = self.output.text_of(line), line.rank
            if rank not in outputs and outputs and self.is_stop(text):
                rank = next(iter(outputs))
            output = outputs.get(rank)
            if output is None:
                if len(outputs) >= self.most_open:
                    yield from outputs.pop(next(iter(outputs))).runs()
                output = outputs[rank] = self.output(block=block, line=line.number, rank=rank)
            elif output.begins(text):
                yield from output.runs()
                output = outputs[rank] = output.following(line, text)
            output.read(line, text)
            yield from output.drain()
            if output.ended:
                yield from outputs.pop(rank).runs()
                if self.ends_with_outputs and not outputs:
                    return
        for output in outputs.values():
            output.alone = len(outputs) == 1
            yield from output.runs()

    def is_stop(self, text: str) -> bool:
        """Tell whether a line, of a rank that has printed nothing else, says why the first one stopped."""
        return False
