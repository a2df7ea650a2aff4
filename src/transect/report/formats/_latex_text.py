"""Foreign text in LaTeX: whatever it holds, it is set as it stands and runs nothing."""

from __future__ import annotations

import re

from transect.report.formats._markdown_text import CODE
from transect.report.text import clean

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
    "\u2009": r"\,",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": r"$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "µ": r"\textmu{}",
    "μ": r"\textmu{}",
    "…": r"\dots{}",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "∞": r"$\infty$",
    "√": r"$\surd$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "°": r"\textdegree{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "Δ": r"$\Delta$",
    "σ": r"$\sigma$",
    "²": r"\texttwosuperior{}",
    "³": r"\textthreesuperior{}",
    "¹": r"\textonesuperior{}",
    "½": r"\textonehalf{}",
    "§": r"\S{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "✓": r"$\checkmark$",
    "∑": r"$\Sigma$",
    "÷": r"$\div$",
    "⁻": r"$^{-}$",
    "⁸": r"$^{8}$",
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
    return "".join(rf"\texttt{{{_plain(part)}}}" if place % 2 else _plain(part) for place, part in enumerate(parts))


def _plain(text: str) -> str:
    return _LIGATURES.sub(r"\g<0>{}", "".join(map(_character, text)))


def _character(character: str) -> str:
    known = _ESCAPES.get(character) or _SIGNS.get(character)
    if known is not None:
        return known
    if " " <= character <= "~":
        return character
    # Letters of Latin-1, which every LaTeX since 2018 reads from UTF-8; but for the feminine and masculine signs.
    if "À" <= character <= "ÿ":
        return character
    return f"{{[}}U+{ord(character):04X}{{]}}"
