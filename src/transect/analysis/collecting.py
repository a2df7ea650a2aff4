"""Building many objects without looking for circles among them, of which they have none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Put the search for circles of objects off; works as a decorator as well.

    Millions of objects stay until the end, and Python would look through all of them again and again: a
    fifth of the time of a large report.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # All of them count as old at once: the next object made would have the young ones searched.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
