"""What goes to a terminal: the one place through which every message passes.

Names of files, folders and plug-ins are anybody's: an escape sequence in one could colour, move or
clear what a person sees, and a newline could forge a line of ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TextIO

from transect.domain.secrets import without_secrets

# Controls, marks that turn the direction of text around, and what stands for bytes of a name that are no text.
_UNSAFE = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


# Of a rule of Snakemake's: what its job says is kept there too. No child of the job has it.
_LOG = os.environ.pop("TRANSECT_LOG", "")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # the byte, as os.fsdecode keeps it
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def printable(text: str, kept: str = "") -> str:
    r"""Return `text` as one line that a terminal or a page shows and does not obey; `kept` characters stay.

    >>> printable("a\x1b[2Jb\nc\udcff"), printable("a\x1b\nb", "\n")
    ('a\\x1b[2Jb\\nc\\xff', 'a\\x1b\nb')
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in kept else _escaped(match), text)


def say(*lines: str, to: TextIO | None = None) -> None:
    """Print each of `lines` as one line without secrets, on stderr unless `to` is given."""
    for line in lines:
        text = printable(without_secrets(line))
        print(text, file=to or sys.stderr)
        if _LOG and to is None:
            # What cannot be kept, as where a disk is full, is said all the same.
            with contextlib.suppress(OSError), open(_LOG, "a", encoding="utf-8") as log:  # noqa: PTH123 imported everywhere
                print(text, file=log)


def complain(error: object) -> None:
    """Say what is wrong: an error of ours may have several lines."""
    say(*f"transect: {error}".split("\n"))


def overwrite(text: str | None) -> None:
    """Show `text` on stderr in place of what was shown last, or end that line where it is None."""
    sys.stderr.write("\n" if text is None else f"\r{printable(text)}\x1b[K")
    sys.stderr.flush()
