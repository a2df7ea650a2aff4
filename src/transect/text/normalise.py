"""Texts are brought to one form, so that two that look alike are alike."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_HALF_PAIRS = re.compile("[\ud800-\udfff]")
# As many as the Stream-Safe Text Format allows (UAX 15, section 13): the time that NFC takes grows
# with the square of their number.
MAX_MARKS = 30


def normalise(text: str) -> str:
    r"""Return `text` in NFC, its lines without needless space, and without empty lines.

    Control characters go, and so does what is not seen: marks of direction, joiners, soft hyphens.
    Half a surrogate pair becomes U+FFFD. Of more than 30 marks on one letter the others go.

    >>> normalise("Gru\u0308\u00df  Gott\r\n\r\n\u202edrucker\0")
    'Grüß Gott\ndrucker'
    """
    if text.isascii():
        if text.isprintable():
            return " ".join(text.split()) if "  " in text else text.strip()
    else:
        text = _HALF_PAIRS.sub("\ufffd", text)
    text = _LINE_ENDS.sub("\n", text).translate(_removed())
    if not text.isascii():
        text = unicodedata.normalize("NFC", _too_many_marks().sub(r"\1", text))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


@cache
def _removed() -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    for code in range(sys.maxunicode + 1):
        kind = unicodedata.category(chr(code))
        if kind == "Cf" or (kind == "Cc" and chr(code) not in "\t\n"):
            table[code] = None
    return table


@cache
def _too_many_marks() -> re.Pattern[str]:
    marks = (code for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code)))
    kind = "".join(re.escape(chr(code)) for code in marks)
    return re.compile(f"([{kind}]{{{MAX_MARKS}}})[{kind}]+")
