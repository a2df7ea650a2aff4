"""Names as people type them: in capitals, with underscores, or another name of the same thing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.casefold())


def meant(given: str, known: Mapping[str, Collection[str]]) -> list[str]:
    """Return the known names that a given one may stand for, sorted: itself alone where it is known.

    `known` has each name's other names. Capitals, and whether words are joined by `-`, `_` or a space, do not count.

    >>> meant("PyTorch", {"torch": ["pytorch"], "numpy": []})
    ['torch']
    >>> meant("ddp", {"ddp-gloo": ["ddp"], "ddp-nccl": ["ddp"]})
    ['ddp-gloo', 'ddp-nccl']
    """
    if given in known:
        return [given]
    plain = _plain(given)
    return sorted(name for name, others in known.items() if plain in map(_plain, (name, *others)))


def only_meant(given: str, known: Mapping[str, Collection[str]]) -> str:
    """Return the one known name that is meant; the given one where none is, or one of several may be."""
    found = meant(given, known)
    return found[0] if len(found) == 1 else given
