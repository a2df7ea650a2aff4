"""The report's tables for a paper in LaTeX: one file each, to `\\input` where it belongs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transect.report.blocks import Chip, Table, Value
from transect.report.formats import REPORT_FORMATS, Contents
from transect.report.formats._front import answers, decisions, findings
from transect.report.formats._latex_text import PACKAGES, latex
from transect.report.formats._walk import NamedTable, tables
from transect.report.made import Made

# More rows than this do not fit on a page: such a table goes on over several.
_ONE_PAGE = 40
# A column with longer text breaks its lines.
_LONG_TEXT = 36


@REPORT_FORMATS.register("latex-tables")
class LatexTables:
    """Every table as a LaTeX file, and `all-tables.tex`, which sets them all."""

    place = "latex-tables/"
    needs: Sequence[str] = ()

    def contents(self, made: Made) -> Contents:
        """Write answers, decisions and findings, then every table of every section; one without columns is left out."""
        files: dict[str, bytes] = {}
        left_out = []
        for name, front in (("answers", answers(made)), ("decisions", decisions(made)), ("findings", findings(made))):
            if front.rows:
                files[f"{name}.tex"] = _set(front, front.caption, name).encode("utf-8", "replace")
        for one in tables(made):
            if not one.table.columns or not one.table.rows:
                left_out.append(f"{one.name}: a table without {'columns' if one.table.rows else 'rows'}")
                continue
            files[f"{one.name}.tex"] = _named(one).encode("utf-8", "replace")
        files["all-tables.tex"] = _all(made, list(files)).encode("utf-8", "replace")
        return Contents(files=files, left_out=left_out)


def _named(one: NamedTable) -> str:
    return _set(one.table, f"{one.section.title}: {one.title}", one.name)


def _value(value: Value) -> str:
    if value is None:
        return ""
    return latex(value.text if isinstance(value, Chip) else value)


def _specification(table: Table) -> str:
    """Return what kind of column each is: numbers right, long text in lines, the rest left."""

    def longest(place: int) -> int:
        return max((len(_plain(row[place])) for row in table.rows), default=0)

    long = [not c.numeric and longest(i) > _LONG_TEXT for i, c in enumerate(table.columns)]
    width = rf">{{\raggedright\arraybackslash}}p{{{0.8 / max(1, sum(long)):.2f}\linewidth}}"
    return "".join(
        width if is_long else "r" if column.numeric else "l"
        for column, is_long in zip(table.columns, long, strict=True)
    )


def _plain(value: Value) -> str:
    return "" if value is None else value.text if isinstance(value, Chip) else value


def _lines(table: Table, caption: str, label: str) -> Iterator[str]:
    head = " & ".join(latex(column.title) for column in table.columns) + r" \\"
    rows = [" & ".join(map(_value, row)) + r" \\" for row in table.rows]
    title = rf"\caption{{{latex(caption)}}}\label{{tab:{label}}}"
    specification = _specification(table)
    if len(rows) > _ONE_PAGE:
        yield rf"\begin{{longtable}}{{{specification}}}"
        yield rf"{title}\\"
        yield from (
            r"\toprule",
            head,
            r"\midrule",
            r"\endfirsthead",
            r"\toprule",
            head,
            r"\midrule",
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *rows,
            r"\end{longtable}",
        )
    else:
        yield from (
            r"\begin{table}",
            r"\centering",
            title,
            rf"\begin{{tabular}}{{{specification}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
        )
        if table.note:
            yield rf"\par\smallskip {latex(table.note)}"
        yield r"\end{table}"
    if table.note and len(rows) > _ONE_PAGE:
        yield rf"\par\noindent {latex(table.note)}\par"


def _set(table: Table, caption: str, label: str) -> str:
    needs = " ".join(rf"\usepackage{package}" for package in PACKAGES)
    return "\n".join([f"% {needs}", *_lines(table, caption, label)]) + "\n"


def _all(made: Made, names: Sequence[str]) -> str:
    """Return a document with every table: each float on its own page would stop LaTeX, so they are flushed."""
    return (
        "\n".join(
            [
                r"\documentclass[a4paper,landscape,10pt]{article}",
                *(rf"\usepackage{package}" for package in PACKAGES),
                r"\usepackage[margin=15mm]{geometry}",
                r"\begin{document}",
                r"\scriptsize\setlength{\tabcolsep}{3pt}",
                rf"\noindent {latex(made.context.title)} (study {latex(made.context.study)})",
                *(rf"\input{{{name}}}\clearpage" for name in names),
                r"\end{document}",
            ]
        )
        + "\n"
    )
