"""What the log of an environment's build says of why it failed."""

from __future__ import annotations

import re

_TAIL_LINES = 15
# What compilers, CMake, make and our own scripts call an error. What pip calls one (two words, or
# many in capitals) only frames them.
_ERROR = re.compile(
    r"(?:^|[\s:])(?:fatal )?error: (?!subprocess-exited|metadata-generation|legacy-install)"
    r"|^\s*CMake Error|\*\*\* .*Error \d"
)
_AROUND = 2, 5
# A compiler's command line can be kilobytes long.
_WIDTH = 300


def told(lines: list[str]) -> str:
    """Return what a failed build said: the lines around its first error, and its last lines."""
    lines = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…" for line in lines]
    start = max(0, len(lines) - _TAIL_LINES)
    first = next((i for i, line in enumerate(lines) if _ERROR.search(line)), None)
    if first is None:
        return "\n".join(lines[start:])
    before, after = max(0, first - _AROUND[0]), first + _AROUND[1]
    if after >= start:
        return "\n".join(lines[min(before, start) :])
    return "\n".join([*lines[before:after], "[…]", *lines[start:]])
