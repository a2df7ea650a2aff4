"""`transect clean --environments`: what of the cache of environments nothing needs any more."""

from __future__ import annotations

import re
import time

import typer

from transect.cli.output import print_lines, print_table
from transect.domain.errors import BadInput
from transect.domain.paths import environments_folder

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)
_DAY_S = 86400


def bytes_of(text: str) -> float:
    """Return the bytes of a size.

    >>> bytes_of("500M"), bytes_of("1.5 GB"), bytes_of("7")
    (500000000.0, 1500000000.0, 7.0)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"--larger-than {text}: expected a size such as 500M or 2G")
    return float(match[1]) * _UNITS[match[2].upper()]


def _shown(size: int) -> str:
    unit = next((unit for unit in ("G", "M", "K") if size >= _UNITS[unit]), "")
    return f"{size / _UNITS[unit]:.1f} {unit}B" if unit else f"{size} B"


def clean_environments(older_than: float | None, larger_than: str | None, *, remove_them: bool) -> None:
    """List what is not needed and its sizes; remove it where that was asked for. Exit code 1 if something could not be."""
    from transect.engine.unused_environments import find_unused, remove

    if older_than is not None and not older_than >= 0:
        raise BadInput(f"--older-than {older_than}: expected a number of days, 0 or more")
    least, now = bytes_of(larger_than) if larger_than else 0.0, time.time()
    unused, kept = find_unused()
    base = environments_folder()
    old = [found for found in unused if (now - found.used) / _DAY_S >= (older_than or float("-inf"))]
    sized = [(found, size) for found in old if (size := found.size()) >= least]
    rows = []
    for found, size in sorted(sized, key=lambda pair: -pair[1]):
        day = time.strftime("%Y-%m-%d", time.gmtime(found.used))
        name = found.folder.relative_to(base)
        rows.append((str(name), found.kind, _shown(size), day if found.noted else f"not noted; made {day}"))
    if rows:
        print_table(("in " + str(base), "what", "size", "last used"), rows)
    print_lines(*(f"left {entry.folder.relative_to(base)}: {entry.reason}" for entry in kept))
    total = sum(size for _, size in sized)
    others = f"; {len(unused) - len(sized)} more are younger or smaller" if len(unused) > len(sized) else ""
    if not remove_them:
        again = ": --yes removes them" if rows else ""
        print_lines(f"{len(rows)} that no definition here makes, {_shown(total)}{again}{others}")
        return
    freed = refused = 0
    for found, size in sized:
        if reason := remove(found):
            print_lines(f"left {found.folder.relative_to(base)}: {reason}")
            refused += 1
        else:
            freed += size
    print_lines(f"removed {len(sized) - refused} of {len(sized)}, {_shown(freed)}{others}")
    if refused:
        raise typer.Exit(1)
