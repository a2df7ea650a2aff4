"""Foreign text in Markdown: whatever it holds, it is shown and does nothing."""

from __future__ import annotations

import re

from transect.report.engine.shell import CODE
from transect.report.engine.text import clean

# What means something inside of a line of GitHub's Markdown, and what does at its start only.
_MARKS = re.compile(r"[\\`*_\[\]|~$]|:(?=[\w+-]+:)")
_STARTS = re.compile(r"(?:\d{1,9}(?=[.)])|(?=[-+=#]))")
_RUNS = re.compile(r"`+")
# GitHub makes links of these without any mark, and tells people who are named.
_LINKS = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(?=:)|\bwww(?=\.)|@")


def inline(text: str) -> str:
    r"""Return text on one line that Markdown shows as it is, also in a table's cell.

    >>> inline("<b>*a*</b> | x\ny"), inline("1.20 ms - a_b"), inline("1. no list")
    ('&lt;b&gt;\\*a\\*&lt;/b&gt; \\| x y', '1.20 ms - a\\_b', '1\\. no list')
    """
    # A narrow space inside a number stays.
    text = re.sub(r"[ \t\n]+", " ", clean(text)).strip(" ")
    # As on the page, what lies between backticks is code.
    parts = [
        "`" + part.replace("|", r"\|") + "`" if place % 2 else _plain(part)
        for place, part in enumerate(CODE.split(text))
    ]
    text = "".join(parts)
    start = _STARTS.match(text)
    # A number goes on behind its point; a list's does not.
    if start is None or re.match(r"\d+\.\d", text):
        return text
    return f"{start[0]}\\{text[start.end() :]}"


def _plain(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKS.sub(_broken, _MARKS.sub(r"\\\g<0>", text))


def _broken(match: re.Match[str]) -> str:
    """Part what would become a link by an empty comment, which nobody sees."""
    found = match[0]
    return "@<!-- -->" if found == "@" else f"{found}<!-- -->"


def row(cells: list[str]) -> str:
    """Return a line of a table; its cells are escaped already."""
    return f"| {' | '.join(cells)} |"


def fenced(text: str) -> str:
    """Return text of many lines in a block of code whose fence is longer than any inside."""
    text = clean(text).rstrip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in _RUNS.findall(text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
