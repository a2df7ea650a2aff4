"""Text of HTML mails, in time that grows with their length, whatever they hold.

A parser that builds a tree does not promise that: Python's own is quadratic in unclosed comments.
"""

from __future__ import annotations

import html
import re

_HTML = re.compile(
    r"<(?:!doctype|html|head|body|div|p|br|span|table|td|a|b|i|u|ul|ol|li|h[1-6]|font|img|pre|"
    r"blockquote|strong|em)(?:\s[^<>]*)?/?>|</(?:script|style)\s*>",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^<>]*>|<(?P<close>/?)(?P<tag>[a-z][a-z0-9]*)(?P<rest>[^<>]*)>", re.IGNORECASE | re.DOTALL
)
# What is between them is no text; the rest of a file whose tag is not closed is none either.
_RAW = {"script", "style", "title", "template"}
_BLOCK_TAGS = "br p div tr table li ul ol h1 h2 h3 h4 h5 h6 pre hr blockquote body section article"
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_QUOTE = re.compile(r"gmail_quote|moz-cite-prefix|yahoo_quoted|divrplyfwdmsg", re.IGNORECASE)
_EMPTY = {"br", "hr", "img", "input", "meta", "link"}


def is_html(text: str) -> bool:
    """Tell whether a text has tags as mail programs write them."""
    return "<" in text and _HTML.search(text) is not None


def text_of_html(markup: str, *, quotes: bool = False) -> str:
    """Return what a reader would see, a line for each block; without `quotes` no quoted mail.

    Quoted is what is in `blockquote`, or in the elements that mail programs mark as such.
    """
    pieces: list[str] = []
    # The element that is left out, and how many of its name are open in it.
    skipped, depth, end = "", 0, 0
    raw_end: dict[str, re.Pattern[str]] = {}
    position = 0
    while (found := _TOKEN.search(markup, position)) is not None:
        if not skipped:
            pieces.append(html.unescape(markup[end : found.start()]))
        position = end = found.end()
        tag, closes = (found["tag"] or "").lower(), bool(found["close"])
        if skipped:
            depth += 0 if tag != skipped else -1 if closes else 1
            if depth == 0:
                skipped = ""
        elif tag in _RAW and not closes:
            closing = raw_end.setdefault(tag, re.compile(rf"</{tag}[^<>]*>|\Z", re.IGNORECASE))
            stop = closing.search(markup, position)
            position = end = stop.end() if stop else len(markup)
        elif not closes and not quotes and tag not in _EMPTY and _is_quote(tag, found["rest"] or ""):
            skipped, depth = tag, 1
        elif tag in _BLOCKS:
            pieces.append("\n")
        elif tag in ("td", "th"):
            pieces.append(" ")
    if not skipped:
        pieces.append(html.unescape(markup[end:]))
    return "".join(pieces)


def _is_quote(tag: str, attributes: str) -> bool:
    return tag == "blockquote" or _QUOTE.search(attributes) is not None
