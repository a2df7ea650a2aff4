"""Tables, figures, lists and paragraphs of a paper in LaTeX, from the blocks of a report's sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from transect.report.engine.blocks import Chart, Charts, Explained, Facts, Failure, Heading, Prose, Table
from transect.report.engine.finding import names
from transect.report.engine.formats._bibliography import Bibliography
from transect.report.engine.formats._walk import Names, charts
from transect.report.engine.formats.figures import pdf_of, standalone
from transect.report.engine.formats.latex_tables import captioned, latex, plain_of, rows_of, specification
from transect.report.engine.report import Made
from transect.report.engine.text import clipped

# Rows of one table in a paper; all stand in the exports of tables, and in the records.
_MOST_ROWS = 24
# Letters: of the longest word that a column has room for, of the longest text that makes it wider, and of a line.
_WORD, _WIDE, _LINE = 16, 120, 100
# Facts of the environment that a publication need not tell.
_NAMES_OF_MACHINES = ("host", "nodes of the job")
# In text of LaTeX, the folders of a path of this machine: not of an address or below `~`, and not what every Linux has.
_FOLDERS = re.compile(
    r"(?:(?<![\w./])|(?<=://))(?<!tilde\{\})/(?!(?:proc|sys|dev|usr|etc)/)"
    r"(?:(?:\\_|[\w.@+~-])+/)+(?=\\_|[\w.@+~-])"
)
# Where a long word may break.
_BREAKS = re.compile(r"(\\_|(?<!\\)[/.,=+:-])(?=[^\s{}])")


class Parts:
    """What a paper is put together from: each figure and table once, later ones refer to it.

    `figures` are the files so far, `left_out` says what could not be drawn or is of an unknown kind.
    """

    def __init__(self, made: Made, bibliography: Bibliography) -> None:
        self._made = made
        self._names = {id(chart): name for name, chart in charts(made)}
        self._tables, self._labels = Names(), dict[int, tuple[str, Table]]()
        self.cited = bibliography.cited
        self.figures: dict[str, bytes] = {}
        self.left_out: list[str] = []

    def text(self, text: str) -> str:
        """Return a paragraph, with references where it names a method."""
        return breakable(self.cited(text)) + r"\par"

    def facts(self, items: Sequence[tuple[str, Any]]) -> Iterator[str]:
        """Yield terms and what they stand for."""
        if items:
            yield r"\begin{description}"
            for term, value in items:
                yield rf"\item[{{{latex(clipped(term, _WIDE))}}}] {breakable(self.cited(plain_of(value)))}"
            yield r"\end{description}"

    def listed(self, items: Sequence[str]) -> Iterator[str]:
        """Yield items, which are LaTeX already, as a list."""
        if items:
            yield from (r"\begin{itemize}", *(rf"\item {item}" for item in items), r"\end{itemize}")

    def blocks(self, blocks: Sequence[Any], where: str) -> Iterator[str]:
        """Yield all blocks of a section."""
        for block in blocks:
            match block:
                case Prose():
                    yield self.text(block.text)
                case Explained():
                    yield from map(self.text, block.text.split("\n\n"))
                case Heading():
                    yield rf"\paragraph{{{latex(block.text)}}}"
                case Facts():
                    yield from self.facts(block.items)
                case Table():
                    yield from self.table(block, block.caption or block.folded or where)
                case Charts():
                    yield from self.figures_of(block.items)
                case Failure():
                    yield self.text(f"{block.status.text}, {block.cause}: {block.amount}. {block.meaning}")
                    yield from self.table(block.messages, f"{block.status.text}, {block.cause}: {block.amount}")
                case _:
                    self.left_out.append(f"{where}: a part of kind {type(block).__name__}")

    def figures_of(self, every: Sequence[Chart]) -> Iterator[str]:
        """Yield charts with what is seen and what it means, each once in the paper, and a sentence that refers to them."""
        floats = [line for chart in every for line in self._figure(chart)]
        drawn = [rf"Figure\nobreakspace{{}}\ref{{fig:{self._names[id(chart)]}}}" for chart in every if self._has(chart)]
        if drawn:
            yield from (rf"See {names(drawn, len(drawn))}.\par", *floats)

    def _has(self, chart: Chart) -> bool:
        return f"figures/{self._names[id(chart)]}.pdf" in self.figures

    def _figure(self, chart: Chart) -> Iterator[str]:
        name = self._names[id(chart)]
        if self._has(chart):
            return
        try:
            pdf = pdf_of(standalone(chart, self._made.source))
        except Exception as error:  # of a plug-in's drawing; the paper has to come
            self.left_out.append(f"{name}: {type(error).__name__}: {error}")
            return
        self.figures[f"figures/{name}.pdf"] = pdf
        caption = ". ".join(filter(None, (chart.title.rstrip("."), chart.note)))
        yield from (r"\begin{figure}[tbp]", r"\centering", rf"\fit{{\includegraphics[scale=0.8]{{figures/{name}}}}}")
        yield from (captioned(caption, f"fig:{name}"), r"\end{figure}")

    def table(self, given: Table, caption: str) -> Iterator[str]:
        """Yield a table's first rows, where they belong and no wider than the text."""
        table = _filled(given)
        if not table.columns:
            return
        cut = len(table.rows) - _MOST_ROWS
        if cut > 0:
            table = replace(table, rows=table.rows[:_MOST_ROWS], more=table.more + cut)
        if id(given) in self._labels:
            yield rf"See Table\nobreakspace{{}}\ref{{{self._labels[id(given)][0]}}}.\par"
            return
        label = f"tab:{self._tables.of(caption)}"
        # Kept, so that no other table gets its id.
        self._labels[id(given)] = label, given
        title = captioned(caption, label)
        head, rows = rows_of(table)
        texts = [[column.title, *(plain_of(row[at]) for row in table.rows)] for at, column in enumerate(table.columns)]
        columns = specification(table)
        if "p{" in columns or sum(max(map(len, column)) + 2 for column in texts) > _LINE:
            columns = _widths(table, texts)
        yield from (
            r"{\footnotesize",
            rf"\begin{{longtable}}{{{columns}}}",
            rf"{title}\\",
            *head,
            r"\endfirsthead",
            *head,
        )
        yield from (r"\endhead", r"\bottomrule", r"\endfoot", *map(breakable, rows), r"\end{longtable}")
        yield rf"\noindent {latex(table.note)}\par}}" if table.note else "}"


def _filled(table: Table) -> Table:
    """Return a table without columns of which no row has anything, and without those of paths on the machine that measured."""

    def is_told(at: int) -> bool:
        texts = [plain_of(row[at]) for row in table.rows]
        return any(texts) and not (table.columns[at].code and any(text.startswith("/") for text in texts))

    held = [at for at in range(len(table.columns)) if is_told(at)]
    return replace(
        table, columns=[table.columns[at] for at in held], rows=[[row[at] for at in held] for row in table.rows]
    )


def nameless(block: object) -> object:
    """Return a part on the environment without the names of machines."""
    if not isinstance(block, Table):
        return block
    fact, kept = "", []
    for row in block.rows:
        # A fact's further values have no title of their own.
        fact = plain_of(row[0]) or fact
        kept += [row] if fact not in _NAMES_OF_MACHINES else []
    return replace(block, rows=kept)


def _widths(table: Table, texts: Sequence[Sequence[str]]) -> str:
    """Return columns that share the width of the text: each has room for its longest word, long text gets the rest."""
    words = [min(_WORD, max(len(word) for text in column for word in [*text.split(), ""])) + 2 for column in texts]
    wanted = [max(0, min(_WIDE, max(map(len, column))) - word) for column, word in zip(texts, words, strict=True)]
    spare = max(0, _LINE - sum(words)) / max(1, sum(wanted))
    letters = [word + wish * spare for word, wish in zip(words, wanted, strict=True)]
    align = [r"\raggedleft" if column.numeric else r"\raggedright" for column in table.columns]
    wide = [rf"p{{\dimexpr {share / sum(letters):.3f}\linewidth-2\tabcolsep\relax}}" for share in letters]
    return "".join(rf">{{{how}\arraybackslash}}{one}" for how, one in zip(align, wide, strict=True))


def breakable(written: str) -> str:
    r"""Let long words of LaTeX, such as the ids of cells, break behind their points and dashes; of paths, leave the last name.

    >>> breakable("a-b " + "c" * 20 + "-d"), breakable(latex("1\u202f234")), breakable("see /home/me/x.log")
    ('a-b cccccccccccccccccccc-\\allowbreak{}d', '1\\,234', 'see \\ldots{}/x.log')
    """
    words = _FOLDERS.sub(r"\\ldots{}/", written).split(" ")
    return " ".join(_BREAKS.sub(r"\1\\allowbreak{}", word) if len(word) > _WORD else word for word in words)
