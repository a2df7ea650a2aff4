"""Ranks of one training in two languages: `python -m transect.launch.mixed COMMAND… -- COMMAND…`.

All ranks are started alike, so each becomes its own program here: even ranks the first command, odd ones
the second. They meet by MPI, which has not begun.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from transect.launch.rank import find_numbers

BETWEEN = "--"


def command_of(rank: int, arguments: Sequence[str]) -> list[str]:
    """Return what a rank becomes. Raises ValueError unless there are two commands.

    >>> command_of(2, ["even", "plan.json", "--", "odd"])
    ['even', 'plan.json']
    """
    if BETWEEN not in arguments[1:-1]:
        raise ValueError(f"expected two commands with {BETWEEN} between them, got {arguments}")
    at = list(arguments).index(BETWEEN)
    return [*arguments[at + 1 :]] if rank % 2 else [*arguments[:at]]


def main() -> None:
    """Become the command of this rank."""
    command = command_of(find_numbers(os.environ).rank, sys.argv[1:])
    os.execv(command[0], command)  # noqa: S606 no shell is meant


if __name__ == "__main__":
    main()
