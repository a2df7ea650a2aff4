"""The report's tables for a paper in LaTeX: one file each, to `\\input` where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from transect.report.engine.blocks import Chip, Table, Value
from transect.report.engine.formats import REPORT_FORMATS, Contents, ReportFormat
from transect.report.engine.formats._front import answers, decisions, findings
from transect.report.engine.formats._walk import tables
from transect.report.engine.report import Made
from transect.report.engine.shell import CODE
from transect.report.engine.text import clean, clipped

# More rows than this do not fit on a page: such a table goes on over several.
_ONE_PAGE = 40
# A column with longer text breaks its lines.
_LONG_TEXT = 36
_MOST_CAPTION = 800


@REPORT_FORMATS.register("latex-tables")
class LatexTables(ReportFormat):
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
        for name, caption, table in tables(made):
            if not table.columns or not table.rows:
                left_out.append(f"{name}: a table without {'columns' if table.rows else 'rows'}")
                continue
            files[f"{name}.tex"] = _set(table, caption, name).encode("utf-8", "replace")
        files["all-tables.tex"] = _all(made, list(files)).encode("utf-8", "replace")
        return Contents(files=files, left_out=left_out)


def specification(table: Table) -> str:
    """Return what kind of column each is: numbers right, long text in lines, the rest left."""
    longest = [max(len(plain_of(row[place])) for row in table.rows) for place in range(len(table.columns))]
    long = [not column.numeric and most > _LONG_TEXT for column, most in zip(table.columns, longest, strict=True)]
    width = rf">{{\raggedright\arraybackslash}}p{{{0.8 / max(1, sum(long)):.2f}\linewidth}}"
    return "".join(
        width if is_long else "r" if column.numeric else "l"
        for column, is_long in zip(table.columns, long, strict=True)
    )


def plain_of(value: Value) -> str:
    """Return what stands in a cell as text."""
    return "" if value is None else value.text if isinstance(value, Chip) else value


def rows_of(table: Table) -> tuple[list[str], list[str]]:
    """Return the lines of a table's head and of its rows, without what closes it."""
    head = [r"\toprule", " & ".join(latex(column.title) for column in table.columns) + r" \\", r"\midrule"]
    return head, [" & ".join(latex(plain_of(value)) for value in row) + r" \\" for row in table.rows]


def captioned(caption: str, label: str) -> str:
    """Return a caption with its label. LaTeX sets it on one line first, which cannot be as long as anybody's text."""
    return rf"\caption{{{latex(clipped(caption, _MOST_CAPTION))}}}\label{{{label}}}"


def _lines(table: Table, caption: str, label: str) -> Iterator[str]:
    title = captioned(caption, f"tab:{label}")
    head, rows = rows_of(table)
    if len(rows) > _ONE_PAGE:
        yield from (rf"\begin{{longtable}}{{{specification(table)}}}", rf"{title}\\")
        yield from (*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot", *rows)
        yield r"\end{longtable}"
        if table.note:
            yield rf"\par\noindent {latex(table.note)}\par"
    else:
        yield from (r"\begin{table}", r"\centering", title, rf"\begin{{tabular}}{{{specification(table)}}}")
        yield from (*head, *rows, r"\bottomrule", r"\end{tabular}")
        if table.note:
            yield rf"\par\smallskip {latex(table.note)}"
        yield r"\end{table}"


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


# What the escapes below and the tables need, beside a font encoding with all of ASCII.
PACKAGES = ("[T1]{fontenc}", "{textcomp}", "{amsmath}", "{amssymb}", "{booktabs}", "{longtable}", "{array}")

# TeX's own characters, and those that change their meaning beside others: `<<` is a quotation mark, and `[`
# or `*` behind the end of a row an argument.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
}
# What the report itself writes.
_SIGNS = {
    "\u202f": r"\,",
    "\u00a0": r"\nobreakspace{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": r"$-$",
    "μ": r"\textmu{}",
    "…": r"\dots{}",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "√": r"$\surd$",
    "→": r"$\rightarrow$",
    "⌈": r"$\lceil$",
    "⌉": r"$\rceil$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "✓": r"$\checkmark$",
}
# Two of these in a row are one other sign.
_LIGATURES = re.compile(r"-(?=-)|,(?=,)")


def latex(text: str) -> str:
    r"""Return text on one line as LaTeX sets it, in ASCII and the letters of Latin-1.

    A character that is in none of LaTeX's usual fonts stands as its number, so nothing is lost and nothing
    stops the compiler.

    >>> latex(r"50 % of \input{/etc/passwd}_x"), latex("\u4e2d")
    ('50 \\% of \\textbackslash{}input\\{/etc/passwd\\}\\_x', '{[}U+4E2D{]}')
    """
    parts = CODE.split(re.sub(r"[ \t\n]+", " ", clean(text)))
    return "".join(rf"\texttt{{{_bare(part)}}}" if place % 2 else _bare(part) for place, part in enumerate(parts))


def _bare(text: str) -> str:
    return _LIGATURES.sub(r"\g<0>{}", "".join(map(_character, text)))


def _character(character: str) -> str:
    known = _ESCAPES.get(character) or _SIGNS.get(character)
    if known is not None:
        return known
    if " " <= character <= "~":
        return character
    # Letters and signs of Latin-1, which every LaTeX since 2018 reads from UTF-8.
    if "À" <= character <= "ÿ" or character in "±·µ°²³¹½§":
        return character
    return f"{{[}}U+{ord(character):04X}{{]}}"
