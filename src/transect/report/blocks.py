"""What a section is made of: plain data that the template turns into HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from markupsafe import Markup

__all__ = [
    "MOST_ROWS", "Block", "Body", "Chart", "Charts", "Chip", "Column", "Facts", "Failure",
    "Heading", "LegendItem", "Prose", "Table", "Value", "code", "digits", "table", "words",
]  # fmt: skip

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Chip:
    """A short word on a coloured ground; `tone` is good, warn, bad or plain."""

    text: str
    tone: str = "plain"


Value = str | Chip | None


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column of a table: its head, and what it says of each row.

    Numeric columns are set to the right, code in a face of its own.
    """

    title: str
    value: Callable[[T], Value]
    numeric: bool = False
    code: bool = False


def words(title: str, value: Callable[[T], Value]) -> Column[T]:
    """Return a column of words or chips."""
    return Column(title, value)


def code(title: str, value: Callable[[T], Value]) -> Column[T]:
    """Return a column of names of files and ids."""
    return Column(title, value, code=True)


def digits(title: str, value: Callable[[T], Value]) -> Column[T]:
    """Return a column of numbers, which are set to the right."""
    return Column(title, value, numeric=True)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of formatted values below their columns; `note` says what is left out of them."""

    kind: ClassVar[str] = "table"
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Value]]
    caption: str = ""
    folded: str = field(default="", metadata={"doc": "when set, the table hides behind this title"})
    note: str = ""


# Rows of one table: a page with more can no longer be read, nor opened.
MOST_ROWS = 300


def table(
    items: Sequence[T], columns: Sequence[Column[T]], *, caption: str = "", folded: str = "",
    fold_above: int | None = None, fold_title: str = "", most: int = MOST_ROWS,
) -> Table:  # fmt: skip
    """Make a table with a row per item; rows beyond `most` are counted, not shown.

    With `folded` it hides behind that title; with more rows than `fold_above` behind `fold_title`,
    or else its caption, which then is not said twice.
    """
    if not folded and fold_above is not None and len(items) > fold_above:
        folded, caption = fold_title or caption, caption if fold_title else ""
    rest = len(items) - most
    return Table(
        columns=columns,
        rows=[[column.value(item) for column in columns] for item in items[:most]],
        caption=caption,
        folded=folded,
        note=f"{rest} more rows are not shown here: records.parquet holds the numbers of all."
        if rest > 0 else "",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LegendItem:
    """A drawn sample of a series and its name."""

    svg: Markup
    text: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing, which says in words what it shows, and the numbers behind it."""

    title: str
    svg: Markup
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
class Body:
    """What a section says: its leading sentences, and what follows them."""

    lead: str
    blocks: Sequence[Block]
