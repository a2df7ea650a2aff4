"""What was read of each record, kept in the user's cache folder: a second report reads only new ones."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache, lru_cache
from pathlib import Path

from transect.analysis import entries
from transect.analysis.entries import Row
from transect.domain import cell, metrics, record
from transect.domain.errors import BadInput
from transect.domain.file_cache import FileCache
from transect.domain.files import digest
from transect.domain.paths import environments_folder

# Fewer records than these are read about as soon as they are looked up.
FEW = 1000
# The state of what is named by its own hash.
_LASTING = "text"


def index_file(results: Path) -> Path | None:
    """Return where the index of a study's folder is kept; None where the user has no cache folder."""
    try:
        name = digest([os.fsencode(results.resolve())])[:32]
        return environments_folder().parent / "records" / f"{name}.sqlite"
    except BadInput:
        return None


@lru_cache(maxsize=1)
def _code() -> list[bytes]:
    """Return the code that makes rows, and this file, which lays them out."""
    sources = [__file__, *(module.__file__ for module in (entries, cell, metrics, record))]
    return [Path(str(source)).read_bytes() for source in sources]


class RecordIndex:
    """Rows of one study's records by stage and cell, each good for one state of its file; of few it keeps none."""

    def __init__(self, results: Path, amount: int) -> None:
        self._kept = FileCache(index_file(results) if amount >= FEW else None, _code())
        # What many records say alike, such as their provenance: rows name the hashes of such texts.
        self._text = cache(lambda name: self._kept.get(name.encode(), _LASTING))
        self._shared = cache(self._texts)
        self._name = cache(self._named)

    def get(self, name: str, state: str) -> Row | None:
        """Return the row that was kept of this very file, or None."""
        text = self._kept.get(os.fsencode(name), state)
        if text is None:
            return None
        content, _, names = text.partition("\n")
        shared = self._shared(names)
        return None if shared is None else Row(content=json.loads(content), shared=shared)

    def put(self, name: str, state: str, row: Row) -> None:
        """Keep a row that was just read."""
        if state:
            self._kept.put(os.fsencode(name), state, "\n".join((json.dumps(row.content), *map(self._name, row.shared))))

    def _texts(self, names: str) -> tuple[str, ...] | None:
        texts = [text for name in names.split("\n") if (text := self._text(name)) is not None]
        return tuple(texts) if len(texts) > names.count("\n") else None

    def _named(self, text: str) -> str:
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        self._kept.put(name.encode(), _LASTING, text)
        return name

    def close(self) -> None:
        """Write what is new."""
        self._kept.close()
