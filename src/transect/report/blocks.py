"""What a section is made of: plain data that the template turns into HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from markupsafe import Markup

__all__ = [
    "Block", "Chart", "Charts", "Chip", "Column", "Facts", "Failure", "Heading", "LegendItem",
    "Prose", "Section", "Table", "Value",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chip:
    """A short word on a coloured ground; `tone` is good, warn, bad or plain."""

    text: str
    tone: str = "plain"


Value = str | Chip | None


@dataclass(frozen=True, slots=True)
class Column:
    """Head of a table's column; numeric columns are set to the right."""

    title: str
    numeric: bool = False
    code: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of formatted values below their columns."""

    kind: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    caption: str = ""
    folded: str = field(default="", metadata={"doc": "when set, the table hides behind this title"})


@dataclass(frozen=True, kw_only=True)
class LegendItem:
    """A drawn sample of a series and its name."""

    svg: Markup
    text: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing, what it says in words, and the numbers behind it."""

    title: str
    svg: Markup
    alt: str
    table: Table
    note: str = ""
    legend: Sequence[LegendItem] = ()


@dataclass(frozen=True, kw_only=True)
class Charts:
    """Charts that stand beside each other where the page is wide enough."""

    kind: ClassVar[str] = "charts"
    items: Sequence[Chart]


@dataclass(frozen=True)
class Prose:
    """One paragraph."""

    kind: ClassVar[str] = "prose"
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Terms and their values."""

    kind: ClassVar[str] = "facts"
    items: Sequence[tuple[str, Value]]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A cell that did not end well, with what is known about it."""

    kind: ClassVar[str] = "failure"
    cell: str
    stage: str
    status: Chip
    cause: str
    message: str
    log_tail: str


Block = Table | Charts | Prose | Heading | Facts | Failure


@dataclass(frozen=True, kw_only=True)
class Section:
    """A numbered part of the report."""

    id: str
    title: str
    lead: str
    blocks: Sequence[Block]
