"""What a section is made of: plain data that the template turns into HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

from markupsafe import Markup

from transect.report.engine.facets import NOTHING, Facets, facets_of
from transect.report.engine.text import Numbers, Scale, Writer, numbers_behind, plain
from transect.stats.comparisons import Confidence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Chip:
    """A short word on a coloured ground; `tone` is good, warn, bad or plain.

    `title` is the tooltip; what it says stands somewhere else in the page as well.
    """

    text: str
    tone: str = "plain"
    title: str = ""


Value = str | Chip | None

_SURENESS = {Confidence.CONFIRMED: Chip("sure", "good"), Confidence.PROVISIONAL: Chip("likely", "warn")}


def sureness(confidence: Confidence) -> Chip:
    """Return the chip that says in a word or two how far something may be trusted."""
    return _SURENESS.get(confidence, Chip("not known"))


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column of a table: its title, the value that it takes from a row, and how that is written.

    Text and chips are shown as they are, None as `missing`; counts are written with all their digits, other numbers
    with three, unless `write` is given. Numeric columns are right-aligned, code has a font of its own.
    """

    title: str
    value: Callable[[T], Any]
    write: Writer = plain
    missing: Value = None
    numeric: bool = False
    code: bool = False

    def entry(self, item: T) -> Value:
        """Return what stands in the row of an item."""
        return self.written(self.value(item))

    def written(self, value: Any) -> Value:
        """Return how a value stands in its row."""
        if value is None:
            return self.missing
        if isinstance(value, (str, Chip)):
            return value
        return self.write.text(value) if isinstance(self.write, Scale) else self.write(value)


def words(title: str, value: Callable[[T], Any], missing: Value = None) -> Column[T]:
    """Return a column of words or chips; None leaves its place empty."""
    return Column(title, value, missing=missing)


def code(title: str, value: Callable[[T], Value]) -> Column[T]:
    """Return a column of names of files and ids."""
    return Column(title, value, code=True)


def digits(title: str, value: Callable[[T], Any], write: Writer = plain, missing: Value = "–") -> Column[T]:
    """Return a column of numbers, which are set to the right; None is a dash."""
    return Column(title, value, write, missing, numeric=True)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of formatted values below their columns; `more` rows are left out, and `note` says so.

    `about` holds the facets of each row, for the page's filter; `numbers` those of columns, by their place, as
    `numbers_behind` gives them.
    """

    kind: ClassVar[str] = "table"
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Value]]
    caption: str = ""
    folded: str = field(default="", metadata={"doc": "when set, the table hides behind this title"})
    about: Sequence[Facets] = ()
    numbers: Mapping[int, Numbers] = field(default_factory=dict)
    more: int = 0

    @property
    def note(self) -> str:
        """What a reader has to know of the rows; empty where all are there."""
        if not self.more:
            return ""
        rows = "1 more row is" if self.more == 1 else f"{self.more} more rows are"
        return f"{rows} not shown here: the records hold the numbers of all."


# Rows of one table: a page with more can no longer be read, nor opened.
MAX_ROWS = 300
# Rows of one that is not folded.
MAX_OPEN = 16


def table(
    items: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    caption: str = "",
    folded: str = "",
    fold_title: str = "",
    most: int = MAX_ROWS,
    about: Callable[[T], Any] = lambda item: item,
) -> Table:
    """Make a table with a row per item; rows beyond `most` are counted, not shown.

    With `folded` it hides behind that title, and behind `fold_title`, or else its caption, only with many rows. `about`
    says of each item what its row is about, where `facets_of` would not find it in the item itself.
    """
    folded = folded or ((fold_title or caption) if len(items) > MAX_OPEN else "")
    shown, hidden = items[:most], len(items) - most
    values = [[column.value(item) for column in columns] for item in shown]
    rows = [[c.written(v) for c, v in zip(columns, row, strict=True)] for row in values]
    numbers = {
        place: found
        for place, column in enumerate(columns)
        if column.numeric and (found := numbers_behind(column.write, [row[place] for row in values]))
    }
    return Table(
        columns=columns,
        rows=rows,
        caption=caption,
        folded=folded,
        more=max(0, hidden),
        about=[facets_of(about(item)) for item in shown],
        numbers=numbers,
    )


@dataclass(frozen=True, kw_only=True)
class LegendItem:
    """A drawn sample of a series and its name."""

    svg: Markup
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """What one mark of a drawing stands for.

    Numbers are in the axis's unit; `what` is the word for `value`, `ends` that for `low` and `high`,
    `count` the number of runs behind it. A line stands for `parts`, which are places of other marks.
    """

    label: str
    about: Any = None
    at: float | None = None
    what: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    ends: str = ""
    count: int | None = None
    parts: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing, its description in words, and the numbers behind it.

    `drawing` is an SVG, or one that is being drawn: `svg` waits for it, and raises the error that stopped it. `name` is
    unique in the page, `axis` the title of the axis of its values, `across` that of the other one, and `marks` says
    what each mark stands for, in the order of the drawing's numbers. `title` says what is seen, `note` what it means.
    """

    title: str
    drawing: Markup | Future[Markup]
    table: Table
    note: str = ""
    legend: Sequence[LegendItem] = ()
    name: str = ""
    axis: str = ""
    across: str = ""
    marks: Sequence[Mark] = ()

    @property
    def single(self) -> bool:
        """Whether it draws one thing alone: its number says as much."""
        drawn = [mark for mark in self.marks if not mark.parts]
        return len(drawn) == 1 and drawn[0].value is not None

    @property
    def svg(self) -> Markup:
        """The drawing as SVG, ready for the page. Raises ValueError for what cannot be drawn."""
        return self.drawing.result() if isinstance(self.drawing, Future) else self.drawing


@dataclass(frozen=True, kw_only=True)
class Charts:
    """Charts that stand beside each other where the page is wide enough; behind a title with `folded`."""

    kind: ClassVar[str] = "charts"
    items: Sequence[Chart]
    folded: str = ""


@dataclass(frozen=True)
class Prose:
    """One paragraph."""

    kind: ClassVar[str] = "prose"
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Explained:
    """Paragraphs on how a section is to be read, an empty line between them: all of them fold at its end."""

    kind: ClassVar[str] = "explained"
    text: str


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
    """Cells that did not end well and need the same next step: their messages, and what to do now.

    `messages` lists them; `logs` holds (cell, end of its log) of some.
    `command` is a line to type.
    """

    kind: ClassVar[str] = "failure"
    status: Chip
    cause: str
    amount: str
    meaning: str
    action: str
    command: str
    messages: Table
    logs: Sequence[tuple[str, str]] = ()
    facets: Facets = NOTHING


Block = Table | Charts | Prose | Explained | Heading | Facts | Failure


@dataclass(frozen=True)
class Lead:
    """The leading sentences of a section: the first stands above it, the others are `Explained`.

    `empty` is said in their place where nothing follows.
    """

    text: str
    empty: str = ""


# What a section yields: its lead, a block, one chart, or nothing.
Part = Lead | Block | Chart | None


def note(text: str) -> Prose:
    """Return a paragraph that does not ask for attention."""
    return Prose(text, quiet=True)


@dataclass(frozen=True, kw_only=True)
class Body:
    """What a section says: its leading sentence, and what follows it."""

    lead: str
    blocks: Sequence[Block]

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Body | None:
        """Put parts together: charts in a row stand side by side, None leaves nothing behind.

        What explains goes to the end: `Explained`, all but the first sentence of the lead, and notes that come before
        anything is shown. Without any part there is no body. Raises TypeError for what is no part, such as a text.
        """
        lead = Lead("")
        blocks: list[Block] = []
        explained: list[str] = []
        given = [part for part in parts if part is not None]
        for part in given:
            match part:
                case Lead():
                    lead = part
                case Chart() if part.single:
                    blocks.append(replace(part.table, caption=part.title, folded=""))
                    blocks += [note(part.note)] if part.note else []
                case Chart() if blocks and isinstance(last := blocks[-1], Charts) and not last.folded:
                    blocks[-1] = Charts(items=[*last.items, part])
                case Chart():
                    blocks.append(Charts(items=[part]))
                case Explained():
                    explained.append(part.text)
                case _ if isinstance(part, Block):
                    blocks.append(part)
                case _:
                    raise TypeError(
                        f"a section yields a {type(part).__name__}: expected Lead, Heading, note(…), table(…) or a chart"
                    )
        if not blocks:
            return cls(lead=lead.empty or lead.text, blocks=[]) if given else None
        first = next((at for at, block in enumerate(blocks) if not (isinstance(block, Prose) and block.quiet)), 0)
        notes = [block.text for block in blocks[:first] if isinstance(block, Prose)]
        head, stop, rest = lead.text.partition(". ")
        texts = [text for text in (rest, *notes, *explained) if text]
        end = [Explained("\n\n".join(texts))] if texts else []
        return cls(lead=head + stop.strip(), blocks=[*blocks[first:], *end])
