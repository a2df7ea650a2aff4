"""A JSON document inside of a log, from the line on by which it is known."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any

from transect.hpc.block import Block
from transect.hpc.text import CLIP, Line

_PIECE = re.compile(r'["{}\[\],]|(?:-?[\d.eE+\-]+|true|false|null|NaN),?$')


def read_object(block: Block, first: Line | None = None) -> dict[str, Any] | None:
    """Return the object that the block's first line is in, from that line's first key on; None where it is not whole.

    `first` is a line that the block has handed over already, where the object begins later.

    The block has to hand over every line; what is no piece of JSON, such as words of a launcher, is left out. Braces in texts are counted too: the object ends where both their
    number and JSON's rules say so.
    """
    text, depth = "", 0
    for place, line in enumerate(chain([first] if first else [], block)):
        piece = line.text.strip()
        if place == 0 and not piece.startswith("{"):
            text, depth = "{", 1
        if place and not _PIECE.match(piece):
            continue
        if len(piece) >= CLIP:
            return None
        text += piece + "\n"
        depth += piece.count("{") - piece.count("}")
        if depth <= 0 and "}" in piece:
            try:
                found, _ = json.JSONDecoder().raw_decode(text)
            except ValueError:
                continue
            return found if isinstance(found, dict) else None
    return None
