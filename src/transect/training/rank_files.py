"""What a rank leaves in its folder: series, facts and weights. Each file is whole or not there.

A file is written beside its place, synced to disk and renamed, so that a rank that dies later
(even in its libraries' own teardown) has left its result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.files import write_atomic

__all__ = ["rank_name", "write_arrays", "write_facts"]


def rank_name(rank: int) -> str:
    """Return what the names of a rank's files begin with."""
    return f"rank-{rank:03d}"


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an npz file and sync it. Raises OSError when there is no room; then nothing is left."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_facts(folder: Path, rank: int, facts: Mapping[str, Any]) -> None:
    """Write the rank's facts, its last file: it says that all the others are there."""
    write_atomic(folder / f"{rank_name(rank)}.json", json.dumps(facts))
